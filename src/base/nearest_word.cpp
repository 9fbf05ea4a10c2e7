#include "base/nearest_word.hpp"

#include <algorithm>

namespace gs {
namespace {

// Longer than any word of ours; what it bounds is the work for a text that somebody sends.
constexpr std::size_t kLongest = 100;

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

// The beginning of a word is near to it, however long the rest is.
bool begins_alike(std::string_view a, std::string_view b) {
  return std::min(a.size(), b.size()) > 2 && (a.starts_with(b) || b.starts_with(a));
}

}  // namespace

std::string_view nearest_word(std::string_view wrong, const std::vector<std::string_view>& known) {
  if (wrong.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string_view word : known) {
    const std::size_t edits = begins_alike(wrong, word) ? 1 : edits_between(wrong, word);
    if (edits >= least) continue;
    least = edits;
    best = word;
  }
  return best;
}

}  // namespace gs
