// In every event of a watch and in every list the same is found that a real JSON reader finds
// there, and everything else is refused or survived.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "drivers/kubernetes/api_error.hpp"
#include "drivers/kubernetes/line_splitter.hpp"
#include "drivers/kubernetes/object_name.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/meta.hpp"

namespace {

using gs::Json;

// Null: not one JSON value, or one with a field twice.
Json strict(std::string_view text) {
  const auto json = gs::parse_json(text);
  return json.ok() ? *json : Json();
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void compare(const Json& object, std::string_view text) {
  if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object())
    return;
  const auto found = gs::kube::read_object_name(text);
  CHECK_MSG(found.ok(), found.ok() ? "" : found.error().message);
  CHECK(text_at(object["metadata"], "name") == found->name);
  CHECK(text_at(object["metadata"], "namespace") == found->ns);
  CHECK(text_at(object["metadata"], "uid") == found->uid);
  CHECK(text_at(object["metadata"], "resourceVersion") == found->resource_version);
}

void event(std::string_view line) {
  const auto found = gs::kube::decode_watch_event(line);
  if (found.ok() && found->type == gs::kube::WatchType::Error)
    (void)gs::kube::read_api_error(200, found->object, "1");
  if (found.ok()) (void)gs::kube::read_object_name(found->object);
  // Names are left as they are written; the API server escapes nothing in them.
  const Json json = strict(line);
  if (!json.is_object() || line.find('\\') != line.npos) return;
  if (text_at(json, "type") != "ADDED" || !json.contains("object")) return;
  CHECK_MSG(found.ok(), found.ok() ? "" : found.error().message);
  CHECK(strict(found->object) == json["object"]);
  compare(json["object"], found->object);
}

void list(std::string_view body) {
  std::size_t count = 0;
  const Json json = strict(body);
  const bool is_known = json.is_object() && json.contains("items") && json["items"].is_array();
  (void)gs::kube::decode_list(body, [&](std::string_view item) {
    if (!is_known || body.find('\\') != body.npos) return;
    CHECK(count < json["items"].size());
    CHECK(strict(item) == json["items"][count++]);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384 || size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  gs::kube::LineSplitter splitter(8192);
  const std::size_t step = 1 + data[0] % 64U;
  for (std::size_t at = 0; at < text.size(); at += step)
    if (!splitter.feed(std::string_view(text).substr(at, step), event)) break;
  event(text);
  list(text);
  return 0;
}
