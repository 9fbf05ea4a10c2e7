#include "drivers/kubernetes/json_skim.hpp"

#include <algorithm>

namespace gs {

bool JsonSkim::skip_string() {
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') ++at_;
  }
  return false;
}

bool JsonSkim::skip_nested() {
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    switch (text_[at_]) {
      case '"':
        if (!skip_string()) return false;
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) {
          ++at_;
          return true;
        }
        break;
      default:
        break;
    }
    ++at_;
  }
  return false;
}

bool JsonSkim::next_value(std::string_view& value) {
  skip_space();
  const std::size_t start = at_;
  if (at_ >= text_.size()) return false;
  const char first = text_[at_];
  if (first == '"') {
    if (!skip_string()) return false;
  } else if (first == '{' || first == '[') {
    if (!skip_nested()) return false;
  } else {
    at_ = std::min(text_.find_first_of(",]} \n\t\r:", at_), text_.size());
    if (at_ == start) return false;
  }
  value = text_.substr(start, at_ - start);
  return true;
}

}  // namespace gs
