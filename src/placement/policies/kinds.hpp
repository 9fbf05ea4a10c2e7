// Which kinds of tasks fit which kinds of nodes, and how large they are there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/demand.hpp"
#include "placement/free_state.hpp"
#include "placement/refill.hpp"

namespace gs {

// The task as an offer to nodes with these GPUs; nothing if they are of the wrong model or size.
std::optional<Offer> offer_on(const Layout& layout, const Names& models, const DemandKind& kind);

// The offers of all kinds, per kind of node; made when first asked for.
class OffersByNode {
 public:
  struct Priced {
    Offer offer;
    double price = 0;
  };
  struct OnNode {
    std::vector<Batch> batches;
    std::vector<Priced> priced;
    std::vector<std::optional<Offer>> by_share;  // number in DemandState::shares
  };
  void clear() { on_.clear(); }
  const OnNode& at(std::uint32_t kind, const Kinds& kinds, const Names& models,
                   const DemandState& demand);
  void reprice(const DemandState& demand);

 private:
  std::vector<std::optional<OnNode>> on_;
};

}  // namespace gs
