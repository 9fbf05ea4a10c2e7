// What lists and watches are made of: pages of objects, and frames of one change each. Objects stay
// as the text that the API server sent; only who they are is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gs {

// Who an object is; views into its text.
struct ObjectMeta {
  std::string_view name, name_space, uid, resource_version;
};

Result<ObjectMeta> read_object_meta(std::string_view object);

struct WatchFrame {
  enum class Type { Added, Modified, Deleted, Bookmark, Error };
  Type type = Type::Bookmark;
  std::string_view object;  // of an Error: a Status
  ObjectMeta meta;          // not of an Error
};

Result<WatchFrame> read_watch_frame(std::string_view line);

struct ListPage {
  std::string_view resource_version, next;  // next: to be asked for the rest; empty: no rest
  std::vector<std::string_view> items;
};

Result<ListPage> read_list_page(std::string_view body);

// Cuts a stream into lines, however its pieces fall.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t limit = 64U << 20) : limit_(limit) {}

  // Calls line(text) for each line that is whole; empty ones are passed over. False: a line is
  // longer than the limit.
  template <typename Line>
  bool feed(std::string_view piece, Line&& line) {
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      if (end == piece.npos) {
        if (rest_.size() + piece.size() > limit_) return false;
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

}  // namespace gs
