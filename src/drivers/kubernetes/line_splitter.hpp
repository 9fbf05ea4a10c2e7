// Cuts a stream into lines, however its pieces fall.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gs::kube {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t limit = 64U << 20) : limit_(limit) {}

  // Calls line(text) for each line that is whole; empty ones are passed over. False: a line is
  // longer than the limit.
  template <typename Line>
  bool feed(std::string_view piece, Line&& line) {
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      if (rest_.size() + std::min(end, piece.size()) > limit_) return false;
      if (end == piece.npos) {
        rest_.append(piece);
        return true;
      }
      const std::string_view head = piece.substr(0, end);
      piece.remove_prefix(end + 1);
      if (rest_.empty()) {
        if (!head.empty()) line(head);
      } else {
        rest_.append(head);
        line(std::string_view(rest_));
        rest_.clear();
      }
    }
    return true;
  }
  void clear() { rest_.clear(); }

 private:
  std::size_t limit_;
  std::string rest_;
};

}  // namespace gs::kube
