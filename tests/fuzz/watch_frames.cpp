// Skimming finds in every frame and list what a real JSON reader finds there, and refuses or
// survives everything else.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "drivers/kubernetes/api_error.hpp"
#include "wire/json_reader.hpp"
#include "drivers/kubernetes/watch_frame.hpp"

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

void compare(const Json& object, const gs::ObjectMeta& meta) {
  const Json& metadata = object.at("metadata");
  CHECK(text_at(metadata, "name") == meta.name);
  CHECK(text_at(metadata, "namespace") == meta.name_space);
  CHECK(text_at(metadata, "uid") == meta.uid);
  CHECK(text_at(metadata, "resourceVersion") == meta.resource_version);
}

void frame(const std::string& line) {
  const auto skimmed = gs::read_watch_frame(line);
  if (skimmed.ok() && skimmed->type == gs::WatchFrame::Type::Error)
    (void)gs::read_api_error(200, skimmed->object, "1");
  // Escapes are left as they are; the API server writes none in what is looked at.
  const Json json = strict(line);
  if (!json.is_object() || line.find('\\') != std::string::npos) return;
  const auto object = json.find("object");
  const bool has_meta = object != json.end() && object->is_object() &&
                        object->contains("metadata") && object->at("metadata").is_object();
  if (text_at(json, "type") != "ADDED" || !has_meta) return;
  CHECK_MSG(skimmed.ok(), skimmed.ok() ? "" : skimmed.error().message);
  CHECK(strict(skimmed->object) == *object);
  compare(*object, skimmed->meta);
}

void list(const std::string& body) {
  const auto skimmed = gs::read_list_page(body);
  const Json json = strict(body);
  if (!skimmed.ok() || !json.is_object() || body.find('\\') != std::string::npos) return;
  const auto items = json.find("items");
  if (items == json.end() || !items->is_array()) return;
  CHECK(items->size() == skimmed->items.size());
  for (std::size_t i = 0; i < items->size(); ++i)
    CHECK(strict(skimmed->items[i]) == items->at(i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384 || size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  gs::LineSplitter splitter(8192);
  const std::size_t step = 1 + data[0] % 64U;
  for (std::size_t at = 0; at < text.size(); at += step)
    if (!splitter.feed(std::string_view(text).substr(at, step),
                       [](std::string_view line) { frame(std::string(line)); }))
      break;
  frame(text);
  list(text);
  return 0;
}
