#include "placement/devices.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "placement/filters.hpp"
#include "placement/mig.hpp"

namespace gs {
namespace {

// Past this many candidate sets the choice is greedy: 64 choose 8 is not worth a perfect answer.
constexpr std::int64_t kMaxSets = 20'000;

struct Links {
  int weakest = 0;  // lowest bandwidth of a pair; high for fewer than two GPUs
  int sum = 0;
  int numa_pairs = 0;
  bool one_island = true;
};

Links links_of(const Layout& layout, GpuMask set) {
  Links links{1 << 20, 0, 0, true};
  for (GpuMask a = set; a != 0; a &= a - 1) {
    const int i = std::countr_zero(a);
    for (GpuMask b = a & (a - 1); b != 0; b &= b - 1) {
      const int j = std::countr_zero(b);
      const int bandwidth = std::min(layout.between(i, j), layout.between(j, i));
      links.weakest = std::min(links.weakest, bandwidth);
      links.sum += bandwidth;
      links.numa_pairs +=
          layout.numa[static_cast<std::size_t>(i)] == layout.numa[static_cast<std::size_t>(j)];
      links.one_island &=
          layout.island[static_cast<std::size_t>(i)] == layout.island[static_cast<std::size_t>(j)];
    }
  }
  return links;
}

// Required bandwidth over every pair; Required without a number means one island.
bool meets(const Links& links, const GpuRequest& request) {
  return request.min_bandwidth_gbps > 0 ? links.weakest >= request.min_bandwidth_gbps
                                        : links.one_island;
}

struct Quality {
  bool meets_wish = false;
  bool contiguous_in_island = false;
  int sum = 0;
  int rest = 0;
  int numa_pairs = 0;
  auto operator<=>(const Quality&) const = default;
};

Quality quality_of(const Layout& layout, GpuMask set, GpuMask free, const GpuRequest& request) {
  const Links links = links_of(layout, set);
  const bool wish = request.topology == TopologyMode::Ignore || meets(links, request);
  return {wish, request.policy == DevicePolicy::Contiguous && links.one_island, links.sum,
          links_of(layout, free & ~set).sum, links.numa_pairs};
}

struct Best {
  GpuMask set = 0;
  Quality quality;

  void offer(const Layout& layout, GpuMask candidate, GpuMask free, const GpuRequest& request) {
    const Quality q = quality_of(layout, candidate, free, request);
    if (request.topology == TopologyMode::Required && !q.meets_wish) return;
    if (set == 0 || q > quality) set = candidate, quality = q;  // ties: the first offered stays
  }
};

std::int64_t sets_of(int n, int k) {
  std::int64_t sets = 1;
  for (int i = 1; i <= k && sets <= kMaxSets; ++i) sets = sets * (n - k + i) / i;
  return sets;
}

GpuMask contiguous(const Layout& layout, GpuMask free, const GpuRequest& request) {
  Best best;
  const GpuMask window = first_gpus(request.count);
  for (int start = 0; start + request.count <= layout.count; ++start)
    if (const GpuMask set = window << start; (free & set) == set)
      best.offer(layout, set, free, request);
  return best.set;
}

// Round robin over the islands, the one with most free GPUs first.
GpuMask spread(const Layout& layout, GpuMask free, int count) {
  std::vector<GpuMask> islands;
  for (int i = 0; i < layout.islands; ++i)
    if (const GpuMask mask = free & layout.of_island(i); mask != 0) islands.push_back(mask);
  std::stable_sort(islands.begin(), islands.end(),
                   [](GpuMask a, GpuMask b) { return gpu_count(a) > gpu_count(b); });
  GpuMask set = 0;
  for (std::size_t turn = 0; gpu_count(set) < count; ++turn) {
    GpuMask& island = islands[turn % islands.size()];
    if (island == 0) continue;
    const GpuMask lowest = island & (~island + 1);
    set |= lowest;
    island &= ~lowest;
  }
  return set;
}

// Every set of `count` out of `free`, in ascending order of the mask's bits (Gosper's hack over
// ranks).
GpuMask best_of_all(const Layout& layout, GpuMask free, const GpuRequest& request) {
  std::array<GpuMask, kMaxGpusPerNode> bits{};
  int n = 0;
  for_each_gpu(free, [&](int gpu) { bits[static_cast<std::size_t>(n++)] = gpu_bit(gpu); });
  Best best;
  std::uint64_t ranks = first_gpus(request.count);
  const std::uint64_t end = n >= 64 ? 0 : std::uint64_t{1} << n;
  while (ranks < end) {
    GpuMask set = 0;
    for (std::uint64_t r = ranks; r != 0; r &= r - 1)
      set |= bits[static_cast<std::size_t>(std::countr_zero(r))];
    best.offer(layout, set, free, request);
    const std::uint64_t low = ranks & (~ranks + 1);
    const std::uint64_t ripple = ranks + low;
    ranks = ripple | (((ranks ^ ripple) / low) >> 2);
  }
  return best.set;
}

// From every GPU as a seed, add the best-connected one each time; the best of those sets.
GpuMask greedy(const Layout& layout, GpuMask free, const GpuRequest& request) {
  Best best;
  for_each_gpu(free, [&](int seed) {
    GpuMask set = gpu_bit(seed);
    while (gpu_count(set) < request.count) {
      int chosen = -1;
      int chosen_sum = -1;
      for_each_gpu(free & ~set, [&](int gpu) {
        int sum = 0;
        for_each_gpu(set, [&](int member) { sum += layout.between(gpu, member); });
        if (sum > chosen_sum) chosen = gpu, chosen_sum = sum;
      });
      set |= gpu_bit(chosen);
    }
    best.offer(layout, set, free, request);
  });
  return best.set;
}

}  // namespace

GpuMask choose_whole(const Layout& layout, GpuMask free, const GpuRequest& request) {
  if (request.count == 0 || gpu_count(free) < request.count) return 0;
  if (request.policy == DevicePolicy::PreferIds) {
    GpuMask wanted = 0;
    for (const int id : request.prefer_ids) {
      if (gpu_count(wanted) == request.count) break;
      if ((free & gpu_bit(id)) != 0) wanted |= gpu_bit(id);
    }
    const bool legal =
        request.topology != TopologyMode::Required || meets(links_of(layout, wanted), request);
    if (gpu_count(wanted) == request.count && legal) return wanted;
  }
  if (request.policy == DevicePolicy::Contiguous) return contiguous(layout, free, request);
  if (request.policy == DevicePolicy::Spread && request.topology != TopologyMode::Required)
    return spread(layout, free, request.count);
  return sets_of(gpu_count(free), request.count) <= kMaxSets ? best_of_all(layout, free, request)
                                                             : greedy(layout, free, request);
}

int whole_sets(const Layout& layout, GpuMask free, const GpuRequest& request, int at_most) {
  if (any_set_will_do(request)) return std::min(at_most, gpu_count(free) / request.count);
  int fit = 0;
  while (fit < at_most) {  // take sets away until none is left, just as placing them would
    const GpuMask set = choose_whole(layout, free, request);
    if (set == 0) break;
    free &= ~set;
    ++fit;
  }
  return fit;
}

std::size_t DeviceChooser::KeyHash::operator()(const Key& k) const noexcept {
  std::uint64_t h =
      reinterpret_cast<std::uintptr_t>(k.layout) ^ (k.free * 0x9e3779b97f4a7c15ULL) ^ (k.ask << 17);
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ULL;
  return h ^ (h >> 32);
}

GpuMask DeviceChooser::whole(const NodeState& node, GpuMask free, const GpuRequest& request) {
  if (request.policy == DevicePolicy::PreferIds) return choose_whole(*node.layout, free, request);
  const std::uint64_t ask = static_cast<std::uint64_t>(request.count) |
                            static_cast<std::uint64_t>(request.policy) << 8 |
                            static_cast<std::uint64_t>(request.topology) << 12 |
                            static_cast<std::uint64_t>(request.min_bandwidth_gbps) << 16;
  const auto [it, added] = kept_.try_emplace({node.layout, free, ask}, 0);
  if (added) it->second = choose_whole(*node.layout, free, request);
  return it->second;
}

// Without a policy the tightest GPUs first, so that whole ones stay whole; distinct devices for a
// request over several.
std::optional<SharedPick> pick_shared(const NodeState& node, const Shape& shape, View view,
                                      NodePolicy* policy) {
  const GpuRequest& gpu = shape.request.gpu;
  const bool rated = policy != nullptr && gpu.count == 1;
  struct Choice {
    bool cool, breaks, wait;
    std::int64_t left;  // the less the better; with a policy: its points, negative
    int index;
    auto operator<=>(const Choice&) const = default;
  };
  std::array<Choice, kMaxGpusPerNode> choices;
  std::size_t count = 0;
  GpuMask fitting = 0;
  for_each_gpu(node.usable() & eligible_gpus(*node.layout, shape), [&](int i) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(i)];
    const GpuPart part = gpu_part(gpu, books.memory_mib.capacity);
    if (books.pinned(view) || part.milli > kWholeGpu) return;
    if (books.milli.free(view) < part.milli || books.memory_mib.free(view) < part.memory_mib)
      return;
    // A GPU that others share comes before a whole one, then what is free already before what has
    // to be waited for.
    const bool breaks = !rated && books.milli.free(view) == kWholeGpu;
    const bool wait = view == View::Future && books.milli.free(View::Now) < part.milli;
    choices[count++] = {(node.warm & gpu_bit(i)) != 0, breaks, wait,
                        books.milli.free(view) - part.milli, i};
    fitting |= gpu_bit(i);
  });
  if (static_cast<int>(count) < gpu.count) return std::nullopt;
  const auto end = choices.begin() + static_cast<std::ptrdiff_t>(count);
  if (rated) {
    NodePolicy::GpuPoints points;
    policy->rate_gpus(node, shape, view, fitting, points);
    for (auto it = choices.begin(); it != end; ++it)
      it->left = -points[static_cast<std::size_t>(it->index)];
    const Choice best = *std::min_element(choices.begin(), end);
    return SharedPick{gpu_bit(best.index), -best.left};
  }
  std::sort(choices.begin(), end);
  SharedPick pick;
  for (int i = 0; i < gpu.count; ++i)
    pick.gpus |= gpu_bit(choices[static_cast<std::size_t>(i)].index);
  return pick;
}

namespace {

std::optional<GpuMask> pinned(const NodeState& node, const Shape& shape, View view, JobId job) {
  GpuMask set = 0;
  for (const int id : shape.request.gpu.pinned_ids) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(id)];
    // A device that is ours only once somebody has gone from it is not ours now.
    const bool held = books.milli.used > 0 || books.pin_releasing > 0;
    // Nor one that is kept for somebody else from a time on when we would still have it.
    const bool ours = books.pin_owner == PinOwner(shape, job) && books.milli.nominated == 0 &&
                      (view == View::Future || !held);
    if (!ours && (node.free_gpus(view) & gpu_bit(id)) == 0) return std::nullopt;
    if ((node.usable() & gpu_bit(id)) == 0) return std::nullopt;
    set |= gpu_bit(id);
  }
  return set;
}

}  // namespace

std::optional<Allocation> DeviceChooser::choose(const Cluster& cluster, NodeId id,
                                                const Shape& shape, View view, JobId job) {
  return choose(cluster.node(id), id, shape, view, job);
}

std::optional<Allocation> DeviceChooser::choose(const NodeState& node, NodeId id,
                                                const Shape& shape, View view, JobId job) {
  const GpuRequest& gpu = shape.request.gpu;
  Allocation place{id, 0, {}};
  if (gpu.sharing == Sharing::Mig) {
    auto picks = choose_mig(node, shape, view);
    if (!picks) return std::nullopt;
    place.mig = std::move(*picks);
    return place;
  }
  if (gpu.count == 0) return place;
  if (!gpu.pinned_ids.empty() || !shape.exclusive()) {
    if (gpu.pinned_ids.empty()) {
      NodePolicy* policy = scorer_ != nullptr ? scorer_->policy_for(shape) : nullptr;
      const auto pick = pick_shared(node, shape, view, policy);
      if (!pick) return std::nullopt;
      place.gpus = pick->gpus;
      return place;
    }
    const auto set = pinned(node, shape, view, job);
    if (!set) return std::nullopt;
    place.gpus = *set;
    return place;
  }
  GpuMask free = node.free_gpus(view);
  if (!shape.models.empty() || gpu.min_memory_mib > 0) free &= eligible_gpus(*node.layout, shape);
  // A choice out of a part must not cost the others of a gang their sets: those are counted on.
  const auto attempt = [&](GpuMask among) {
    place.gpus = gpu_count(among) < gpu.count ? 0 : whole(node, among, gpu);
    if (place.gpus == 0 || among == free || any_set_will_do(gpu)) return place.gpus != 0;
    return whole_sets(*node.layout, free & ~place.gpus, gpu, kMaxGpusPerNode) + 1 >=
           whole_sets(*node.layout, free, gpu, kMaxGpusPerNode);
  };
  // In the future view first what is being freed anyway: what is free now stays free for others.
  if (view == View::Future && (node.busy_now & free) != 0 && attempt(free & node.busy_now))
    return place;
  if ((node.warm & free) != 0 && attempt(free & ~node.warm)) return place;
  if (attempt(free)) return place;
  return std::nullopt;
}

}  // namespace gs
