// Plain best fit over the tree, as it is commonly described, to compare other layouts with.
//
// The innermost row on which one domain holds everything, and there the tightest; inside it the
// roomiest children whole, until one holds the rest: then the tightest that does. Where no domain
// holds it, the roomiest of the outermost row whole, one after the other. Ties: the earlier name.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/tree_counts.hpp"
#include "placement/tree_search.hpp"

namespace gs {

// Fills `parts`, by leaf ascending; false: it does not fit.
bool plain_best_fit(const TreeCounts& counts, std::int32_t count, std::optional<Spot> within,
                    std::vector<SearchPart>& parts);

}  // namespace gs
