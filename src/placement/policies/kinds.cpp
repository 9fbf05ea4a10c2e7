#include "placement/policies/kinds.hpp"

#include <algorithm>

namespace gs {

std::optional<Offer> offer_on(const Layout& layout, const Names& models, const DemandKind& kind) {
  const auto suits = [&](int gpu) {
    const auto i = static_cast<std::size_t>(gpu);
    const std::string& model = models.name(layout.model[i]);
    const bool right =
        kind.models.empty() || std::binary_search(kind.models.begin(), kind.models.end(), model);
    return right && layout.memory_mib[i] >= std::max(kind.min_memory_mib, kind.memory_mib);
  };
  int suited = 0;
  int first = -1;
  for (int gpu = 0; gpu < layout.count; ++gpu)
    if (suits(gpu)) {
      if (first < 0) first = gpu;
      ++suited;
    }
  if (kind.gpus == 0 || suited < kind.gpus) return std::nullopt;
  Offer offer{kind.cpu_milli, kind.gpus, kind.milli};
  if (kind.milli == 0) {
    GpuRequest request;
    request.memory_mib = kind.memory_mib;
    offer.milli = gpu_part(request, layout.memory_mib[static_cast<std::size_t>(first)]).milli;
  }
  if (offer.milli <= 0 || offer.milli > kWholeGpu) return std::nullopt;
  return offer;
}

const OffersByNode::OnNode& OffersByNode::at(std::uint32_t kind, const Kinds& kinds,
                                             const Names& models, const DemandState& demand) {
  if (on_.size() <= kind) on_.resize(kinds.size());
  if (on_[kind]) return *on_[kind];
  OnNode& on = on_[kind].emplace();
  for (const DemandShare& share : demand.shares) {
    on.by_share.push_back(offer_on(kinds.at(kind), models, share.kind));
    if (on.by_share.back()) on.priced.push_back({*on.by_share.back(), share.price});
  }
  on.batches.resize(Demand::kBatches);
  for (std::size_t i = 0; i < demand.batches.size(); ++i)
    if (const auto& offer = on.by_share[demand.batches[i]])
      on.batches[i % Demand::kBatches].push_back(*offer);
  return on;
}

void OffersByNode::reprice(const DemandState& demand) {
  for (auto& on : on_) {
    if (!on) continue;
    std::size_t next = 0;
    for (std::size_t i = 0; i < demand.shares.size(); ++i)
      if (on->by_share[i]) on->priced[next++].price = demand.shares[i].price;
  }
}

}  // namespace gs
