#include "placement/devices.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

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

// Each next one from the island that has given fewest, then from the bus (NUMA node) that has, then
// from the island with most free GPUs.
GpuMask spread(const Layout& layout, GpuMask free, int count) {
  const auto alike = [&](const std::vector<std::uint8_t>& numbers, int gpu, GpuMask among) {
    int found = 0;
    for_each_gpu(among, [&](int other) {
      found += numbers[static_cast<std::size_t>(other)] == numbers[static_cast<std::size_t>(gpu)];
    });
    return found;
  };
  GpuMask set = 0;
  while (gpu_count(set) < count) {
    std::tuple<int, int, int, int> best{kMaxGpusPerNode + 1, 0, 0, 0};
    for_each_gpu(free & ~set, [&](int gpu) {
      best = std::min(best, {alike(layout.island, gpu, set), alike(layout.numa, gpu, set),
                             -alike(layout.island, gpu, free), gpu});
    });
    set |= gpu_bit(std::get<3>(best));
  }
  return set;
}

// Every set of `count` out of `free` that has `fixed` in it, in ascending order of the mask's bits
// (Gosper's hack over ranks).
GpuMask best_of_all(const Layout& layout, GpuMask free, GpuMask fixed, const GpuRequest& request) {
  std::array<GpuMask, kMaxGpusPerNode> bits{};
  int n = 0;
  for_each_gpu(free & ~fixed, [&](int gpu) { bits[static_cast<std::size_t>(n++)] = gpu_bit(gpu); });
  Best best;
  const int open = request.count - gpu_count(fixed);
  std::uint64_t ranks = first_gpus(open);
  for (std::int64_t left = sets_of(n, open); left > 0; --left) {
    GpuMask set = fixed;
    for (std::uint64_t r = ranks; r != 0; r &= r - 1)
      set |= bits[static_cast<std::size_t>(std::countr_zero(r))];
    best.offer(layout, set, free, request);
    if (left == 1) break;  // after the last one of 64 there is no next
    const std::uint64_t low = ranks & (~ranks + 1);
    const std::uint64_t ripple = ranks + low;
    ranks = ripple | (((ranks ^ ripple) / low) >> 2);
  }
  return best.set;
}

// Adds the best-connected GPU each time.
GpuMask grown(const Layout& layout, GpuMask free, GpuMask set, int count) {
  while (gpu_count(set) < count) {
    int chosen = -1;
    int chosen_sum = -1;
    for_each_gpu(free & ~set, [&](int gpu) {
      int sum = 0;
      for_each_gpu(set, [&](int member) { sum += layout.between(gpu, member); });
      if (sum > chosen_sum) chosen = gpu, chosen_sum = sum;
    });
    set |= gpu_bit(chosen);
  }
  return set;
}

// From every GPU as a seed; the best of those sets.
GpuMask greedy(const Layout& layout, GpuMask free, GpuMask fixed, const GpuRequest& request) {
  Best best;
  for_each_gpu(free & ~fixed, [&](int seed) {
    best.offer(layout, grown(layout, free, fixed | gpu_bit(seed), request.count), free, request);
  });
  return best.set;
}

GpuMask best_with(const Layout& layout, GpuMask free, GpuMask fixed, const GpuRequest& request) {
  const int open = request.count - gpu_count(fixed);
  return sets_of(gpu_count(free & ~fixed), open) <= kMaxSets
             ? best_of_all(layout, free, fixed, request)
             : greedy(layout, free, fixed, request);
}

// As many of the wished ids as are free and are asked for, the first ones first.
GpuMask wished(GpuMask free, const GpuRequest& request, int at_most) {
  GpuMask set = 0;
  if (request.policy != DevicePolicy::PreferIds) return set;
  for (const int id : request.prefer_ids)
    if (gpu_count(set) < at_most) set |= free & gpu_bit(id);
  return set;
}

}  // namespace

GpuMask choose_whole(const Layout& layout, GpuMask free, const GpuRequest& request) {
  if (request.count == 0 || gpu_count(free) < request.count) return 0;
  if (request.policy == DevicePolicy::Contiguous) return contiguous(layout, free, request);
  if (request.policy == DevicePolicy::Spread && request.topology != TopologyMode::Required)
    return spread(layout, free, request.count);
  // With all of those that it wishes for they may not be connected as they have to be.
  for (GpuMask wanted = wished(free, request, request.count);;
       wanted = wished(free, request, gpu_count(wanted) - 1))
    if (const GpuMask set = best_with(layout, free, wanted, request); set != 0 || wanted == 0)
      return set;
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

namespace {

// The best set there is, but not at the price of a GPU that is whole or hot where one as good is
// found among the others.
GpuMask set_for_shared(const Layout& layout, GpuMask fitting, GpuMask dear, const GpuRequest& gpu) {
  const GpuMask best = choose_whole(layout, fitting, gpu);
  if (best == 0 || gpu.policy == DevicePolicy::Spread || gpu_count(fitting & ~dear) < gpu.count)
    return best;
  const GpuMask cheap = choose_whole(layout, fitting & ~dear, gpu);
  const auto links = [&](GpuMask set) { return links_of(layout, set).sum; };
  return cheap != 0 && links(cheap) >= links(best) ? cheap : best;
}

}  // namespace

// Without a policy the tightest GPUs first, so that whole ones stay whole; distinct devices for a
// request over several.
std::optional<SharedPick> pick_shared(const NodeState& node, const Shape& shape, View view,
                                      NodePolicy* policy) {
  const GpuRequest& gpu = shape.request.gpu;
  struct Choice {
    bool unwished, cool, breaks, wait;
    std::int64_t left;  // the less the better; with a policy: its points, negative
    int index;
    auto operator<=>(const Choice&) const = default;
  };
  const bool rated = policy != nullptr && gpu.count == 1;
  std::array<Choice, kMaxGpusPerNode> choices;
  std::size_t count = 0;
  GpuMask fitting = 0;
  GpuMask dear = node.warm;
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
    choices[count++] = {true, (node.warm & gpu_bit(i)) != 0,       breaks,
                        wait, books.milli.free(view) - part.milli, i};
    fitting |= gpu_bit(i);
    if (breaks || wait) dear |= gpu_bit(i);
  });
  if (static_cast<int>(count) < gpu.count) return std::nullopt;
  if (sets_differ(gpu)) {
    const GpuMask set = set_for_shared(*node.layout, fitting, dear, gpu);
    return set != 0 ? std::optional(SharedPick{set, 0}) : std::nullopt;
  }
  const auto end = choices.begin() + static_cast<std::ptrdiff_t>(count);
  const GpuMask wanted = wished(fitting, gpu, gpu.count);
  for (auto it = choices.begin(); it != end; ++it)
    it->unwished = (wanted & gpu_bit(it->index)) == 0;
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
