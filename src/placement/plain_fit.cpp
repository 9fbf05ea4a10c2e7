#include "placement/plain_fit.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gs {
namespace {

class PlainFit {
 public:
  PlainFit(const TreeCounts& counts, std::vector<SearchPart>& parts)
      : counts_(counts), layout_(counts.layout()), parts_(parts) {}

  std::optional<std::uint32_t> tightest(int row, const std::vector<std::uint32_t>& domains,
                                        std::int32_t need) const {
    // Nodes that are alike: the one in the tightest innermost domain.
    const auto key = [&](std::uint32_t i) {
      const bool node = row == layout_.leaf_row() && row > 0;
      return std::pair(counts_.tasks(row, i),
                       node ? counts_.tasks(row - 1, layout_.parent(row, i)) : 0);
    };
    std::optional<std::uint32_t> best;
    for (const std::uint32_t i : domains)
      if (counts_.tasks(row, i) >= need && (!best || key(i) < key(*best))) best = i;
    return best;
  }

  void into(int row, std::uint32_t index, std::int32_t need) {
    if (row == layout_.leaf_row())
      parts_.push_back({index, need, false});
    else
      fill(row + 1, layout_.children(row, index), need, true);
  }

  void fill(int row, SpotRange range, std::int32_t need, bool rest_tightest) {
    std::vector<std::uint32_t> left;
    for (std::uint32_t i = range.begin; i < range.end; ++i)
      if (counts_.tasks(row, i) > 0) left.push_back(i);
    const auto roomier = [&](std::uint32_t a, std::uint32_t b) {
      return counts_.tasks(row, a) > counts_.tasks(row, b);
    };
    std::stable_sort(left.begin(), left.end(), roomier);
    while (need > 0) {
      CHECK(!left.empty());
      if (const auto rest = tightest(row, left, need); rest && rest_tightest) {
        into(row, *rest, need);
        return;
      }
      const std::int32_t taken = std::min(need, counts_.tasks(row, left.front()));
      into(row, left.front(), taken);
      need -= taken;
      left.erase(left.begin());
    }
  }

 private:
  const TreeCounts& counts_;
  const TreeLayout& layout_;
  std::vector<SearchPart>& parts_;
};

}  // namespace

bool plain_best_fit(const TreeCounts& counts, std::int32_t count, std::optional<Spot> within,
                    std::vector<SearchPart>& parts) {
  const TreeLayout& layout = counts.layout();
  PlainFit fit(counts, parts);
  std::int64_t room = 0;
  bool found = false;
  for (int row = layout.leaf_row(); row >= (within ? within->row : 0) && !found; --row) {
    const SpotRange range = within ? layout.below(*within, row) : layout.places(row);
    std::vector<std::uint32_t> domains;
    for (std::uint32_t i = range.begin; i < range.end; ++i) domains.push_back(i);
    const auto one = fit.tightest(row, domains, count);
    found = one.has_value();
    if (found) fit.into(row, *one, count);
  }
  if (!found && !within) {
    for (std::uint32_t i = 0; i < layout.width(0); ++i) room += counts.tasks(0, i);
    found = room >= count;
    if (found) fit.fill(0, layout.whole_row(0), count, false);
  }
  std::sort(parts.begin(), parts.end(),
            [](const SearchPart& a, const SearchPart& b) { return a.leaf < b.leaf; });
  return found;
}

}  // namespace gs
