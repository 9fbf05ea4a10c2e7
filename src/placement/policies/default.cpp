// default: the node whose loss hurts what is likely to come least.
//
// Every node has a potential, in GPU milli: what the tasks that usually come would still place
// there (refill), plus a little for what it holds that is scarce (scarcity). A task costs a node
// the potential that is gone afterwards; it goes where it costs least.
//
// Scarcity: a place for a task of kind m has the price weight(m) * idle / places(m), where
// places(m) counts how many such tasks the whole cluster could still take. That is the slope of sum
// of weight * log(places): the last homes of large tasks and of rare models become dear before they
// are gone.
//
// CPU counts in whole cores: more nodes are then alike, and nothing is lost (measured).
#include <cmath>

#include "placement/devices.hpp"
#include "placement/policies/kinds.hpp"
#include "placement/policies/policy.hpp"

namespace gs {
namespace {

constexpr double kScarcity = 0.06;           // milli of scarcity against milli of refill
constexpr std::int64_t kCore = 1000;         // milli
constexpr std::size_t kMaxStates = 200'000;  // past that, start over rather than keep them all
constexpr std::int64_t kUnknown = -1;

class Default final : public NodePolicy {
 public:
  explicit Default(const PolicyContext& context)
      : cluster_(context.cluster), demand_(context.demand) {}

  double value(const NodeState& node, const Shape& shape, View view) override {
    if (node.layout->count == 0) return 0.5;
    const FreeState before = state_of(node, view);
    FreeState after = before;
    after.cpu_milli = node.cpu_milli.free(view) - shape.request.resources.cpu_milli;
    std::int64_t takes = 0;
    std::int64_t later = 0;
    if (shape.gpus() > 0 && !shape.exclusive()) {
      const auto pick = pick_shared(node, shape, view, this);
      if (!pick) return 0;
      for_each_gpu(pick->gpus, [&](int gpu) { takes += use_gpu(node, shape, view, gpu, after); });
      later = shape.gpus() == 1 ? pick->points : potential(after);
    } else {
      after.whole = static_cast<std::uint16_t>(std::max(0, after.whole - shape.gpus()));
      if (last_.version == version_ && last_.before == before && last_.after == after)
        return last_.value;
      takes = std::int64_t{shape.gpus()} * kWholeGpu;
      later = potential(after);
    }
    const double gain = static_cast<double>(later - potential(before)) / Demand::kBatches +
                        static_cast<double>(takes);
    // 0.5: costs just what the task takes; a GPU more or less is worth most around there.
    const double gpus = gain / kWholeGpu;
    const double value = 0.5 + 0.5 * gpus / (1.0 + std::abs(gpus));
    if (shape.gpus() == 0 || shape.exclusive()) last_ = {version_, before, after, value};
    return value;
  }

  void rate_gpus(const NodeState& node, const Shape& shape, View view, GpuMask gpus,
                 GpuPoints& points) override {
    const FreeState before = state_of(node, view);
    int known_free = -1;
    std::int64_t known = 0;
    for_each_gpu(gpus, [&](int gpu) {
      const int free = free_part(node, gpu, view);
      if (free != known_free) {
        FreeState after = before;
        after.cpu_milli = node.cpu_milli.free(view) - shape.request.resources.cpu_milli;
        use_gpu(node, shape, view, gpu, after);
        known_free = free;
        known = potential(after);
      }
      points[static_cast<std::size_t>(gpu)] = known;
    });
  }

  void refresh() override {
    const auto every =
        static_cast<std::uint64_t>(std::max<std::size_t>(50, cluster_.node_count() / 4));
    if (demand_.learn_due()) {
      demand_.learn(every);
      learned();
    }
    if (!demand_.price_due()) return;
    if (!demand_.set_prices(prices(), every)) return;
    offers_.reprice(demand_.state());
    ++version_;
  }

 private:
  void learned() {
    offers_.clear();
    states_.clear();
    kept_.clear();
    ++version_;
  }

  FreeState state_of(const NodeState& node, View view) {
    return free_state(node, view, kinds_.of(node.layout));
  }

  // In 1/kBatches of a GPU milli.
  std::int64_t potential(FreeState state) {
    state.cpu_milli = std::max<std::int64_t>(state.cpu_milli, 0) / kCore * kCore;
    if (states_.size() >= kMaxStates) {
      states_.clear();
      kept_.clear();
    }
    const std::uint32_t id = states_.intern(state);
    if (id == kept_.size()) kept_.push_back({});
    Kept& kept = kept_[id];
    if (kept.version == version_) return kept.potential;
    const auto& on = offers_on(state.kind);
    if (kept.refill == kUnknown) kept.refill = refill(state, on.batches);
    double scarce = 0;
    for (const auto& [offer, price] : on.priced)
      if (price > 0) scarce += price * static_cast<double>(copies(state, offer));
    kept.potential = kept.refill + std::llround(scarce * kScarcity * Demand::kBatches / kOneCopy);
    kept.version = version_;
    return kept.potential;
  }

  const OffersByNode::OnNode& offers_on(std::uint32_t kind) {
    return offers_.at(kind, kinds_, cluster_.shapes().models(), demand_.state());
  }

  // Nodes in the same state are counted first and looked at once.
  std::vector<double> prices() {
    FreeStates states;
    std::vector<std::int64_t> nodes;
    std::int64_t idle = 0;
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < cluster_.node_count(); ++i) {
      const NodeState& node = cluster_.node(NodeId{i});
      if (!node.schedulable() || node.layout->count == 0) continue;
      FreeState state = state_of(node, View::Future);
      state.cpu_milli = std::max<std::int64_t>(state.cpu_milli, 0) / kCore * kCore;
      if (id >= nodes.size() || !(states.at(id) == state)) id = states.intern(state);
      if (id == nodes.size()) nodes.push_back(0);
      ++nodes[id];
      idle += state.gpu_milli();
    }
    const std::vector<DemandShare>& shares = demand_.state().shares;
    std::vector<std::int64_t> places(shares.size(), 0);
    for (id = 0; id < nodes.size(); ++id) {
      const auto& on = offers_on(states.at(id).kind);
      for (std::size_t i = 0; i < shares.size(); ++i)
        if (on.by_share[i]) places[i] += nodes[id] * copies(states.at(id), *on.by_share[i]);
    }
    std::vector<double> prices(shares.size(), 0);
    for (std::size_t i = 0; i < shares.size(); ++i)
      if (places[i] > 0)
        prices[i] = shares[i].weight * static_cast<double>(idle) * kOneCopy /
                    static_cast<double>(places[i]);
    return prices;
  }

  struct Kept {
    std::int64_t refill = kUnknown;
    std::int64_t potential = 0;
    std::uint64_t version = 0;
  };
  // Neighbours are often alike.
  struct Last {
    std::uint64_t version = 0;
    FreeState before, after;
    double value = 0;
  };
  const Cluster& cluster_;
  Demand& demand_;
  Last last_;
  Kinds kinds_;
  OffersByNode offers_;
  FreeStates states_;
  std::vector<Kept> kept_;  // by state
};

}  // namespace

std::unique_ptr<NodePolicy> make_default_policy(const PolicyContext& context) {
  return std::make_unique<Default>(context);
}

}  // namespace gs
