// Which of the words that we know was meant by one that we don't.
#pragma once

#include <string_view>
#include <vector>

namespace gs {

// The word of `known` that is nearest to `wrong`; empty where none is near.
std::string_view nearest_word(std::string_view wrong, const std::vector<std::string_view>& known);

template <typename Words>
std::string_view nearest_word(std::string_view wrong, const Words& known) {
  return nearest_word(wrong, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace gs
