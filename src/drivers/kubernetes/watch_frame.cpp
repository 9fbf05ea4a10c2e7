#include "drivers/kubernetes/watch_frame.hpp"

#include "drivers/kubernetes/json_skim.hpp"

namespace gs {
namespace {

Error broken(const char* what, std::string_view text) {
  return {ErrorCode::Unavailable, std::string("not ") + what + ": '" +
                                      std::string(text.substr(0, 100)) +
                                      (text.size() > 100 ? "...'" : "'")};
}

bool read_type(std::string_view word, WatchFrame::Type& out) {
  using Type = WatchFrame::Type;
  if (word == "ADDED") out = Type::Added;
  if (word == "MODIFIED") out = Type::Modified;
  if (word == "DELETED") out = Type::Deleted;
  if (word == "BOOKMARK") out = Type::Bookmark;
  if (word == "ERROR") out = Type::Error;
  return word == "ADDED" || word == "MODIFIED" || word == "DELETED" || word == "BOOKMARK" ||
         word == "ERROR";
}

}  // namespace

// The rest of an object is not looked at: most of it lies behind its metadata.
Result<ObjectMeta> read_object_meta(std::string_view object) {
  std::string_view text;
  const bool is_object = JsonSkim(object).object([&](std::string_view key, std::string_view value) {
    if (key == "metadata") text = value;
    return text.empty();
  });
  ObjectMeta meta;
  const bool has_meta =
      is_object && JsonSkim(text).object([&](std::string_view key, std::string_view value) {
        if (key == "name") meta.name = skim_string(value);
        if (key == "namespace") meta.name_space = skim_string(value);
        if (key == "uid") meta.uid = skim_string(value);
        if (key == "resourceVersion") meta.resource_version = skim_string(value);
        return true;
      });
  if (!has_meta) return broken("an object of the API server", object);
  return meta;
}

Result<WatchFrame> read_watch_frame(std::string_view line) {
  WatchFrame frame;
  bool has_type = false;
  const bool is_object = JsonSkim(line).object([&](std::string_view key, std::string_view value) {
    if (key == "type") has_type = read_type(skim_string(value), frame.type);
    if (key == "object") frame.object = value;
    return true;
  });
  if (!is_object || !has_type || frame.object.empty()) return broken("a frame of a watch", line);
  if (frame.type == WatchFrame::Type::Error) return frame;
  const auto meta = read_object_meta(frame.object);
  if (!meta) return meta.error();
  frame.meta = *meta;
  return frame;
}

Result<ListPage> read_list_page(std::string_view body) {
  std::string_view metadata, items;
  bool good = JsonSkim(body).object([&](std::string_view key, std::string_view value) {
    if (key == "metadata") metadata = value;
    if (key == "items") items = value;
    return true;
  });
  ListPage page;
  good = good && JsonSkim(metadata).object([&](std::string_view key, std::string_view value) {
    if (key == "resourceVersion") page.resource_version = skim_string(value);
    if (key == "continue") page.next = skim_string(value);
    return true;
  });
  if (good && items != "null" && !items.empty())  // null: an empty list, as Go writes it
    good = JsonSkim(items).array([&](std::string_view item) { page.items.push_back(item); });
  if (!good || page.resource_version.empty()) return broken("a list of the API server", body);
  return page;
}

}  // namespace gs
