// Strict reading of JSON objects into plain structs: every error names the field as a path
// ("gpus[2].index must be a whole number"), and a field that nobody asked for is refused with the
// name that was probably meant.
//
//   ObjectReader in(json);
//   in.required("name", spec.name);
//   in.optional("gpu_count", spec.gpu_count);   // stays as it is where the field is not given
//   in.array("gpus", [&](ObjectReader& gpu) { gpu.required("index", index); ... });
//   if (Status status = in.finish(); !status) return status.error();
//
// The first error is kept and what follows it does nothing, so reading is a plain list of fields;
// finish() tells. `null` counts as not given. Ask for each field once.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace gs {

using Json = nlohmann::json;

// The whole text is one JSON value. Refused besides what is no JSON: a field given twice, the
// character U+0000 (databases can't keep it), and more than kMaxJsonDepth levels.
inline constexpr int kMaxJsonDepth = 64;
Result<Json> parse_json(std::string_view text);

class ObjectReader {
 public:
  // `name` is how errors call the object itself; empty: "the body". Fields of a named object are
  // called "name.field".
  explicit ObjectReader(const Json& json, std::string_view name = {});
  // The name is kept by whoever calls.
  template <std::same_as<std::string> Text>
  ObjectReader(const Json& json, Text&& name) = delete;
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  // Whether the field is given; does not count as reading it.
  bool has(const char* field) const;

  // True: it was given, has the right type, and is in `out`. T: std::string, bool, int,
  // std::int64_t, std::uint64_t, double, std::vector<std::string>, std::vector<int>, and
  // std::vector of pairs of a string and a string or std::int64_t, for an object (sorted by key).
  template <typename T>
  bool optional(const char* field, T& out) {
    const Json* value = find(field);
    return value != nullptr && read(field, *value, out);
  }
  template <typename T>
  bool required(const char* field, T& out) {
    const Json* value = find(field);
    if (value == nullptr) fail(field, "is required");
    return value != nullptr && read(field, *value, out);
  }
  // A word of a fixed list: `words` is a list of pairs of a text and a value.
  template <typename E, typename Words>
  bool one_of(const char* field, E& out, const Words& words) {
    std::string text;
    if (!optional(field, text)) return false;
    for (const auto& [word, value] : words)
      if (text == word) {
        out = value;
        return true;
      }
    std::string list;
    for (const auto& [word, value] : words) list.append(list.empty() ? "" : ", ").append(word);
    fail(field, "must be one of " + list + "; got '" + text + "'");
    return false;
  }
  // Calls read(ObjectReader&) for the object, or for each object of the array, and finishes it.
  template <typename Read>
  bool object(const char* field, Read&& read) {
    const Json* value = find(field);
    if (value == nullptr) return false;
    ObjectReader inner(*this, field, -1, *value);
    if (!failed()) read(inner);
    inner.close();
    return !failed();
  }
  template <typename Read>
  bool array(const char* field, Read&& read) {
    return array(field, std::forward<Read>(read), nullptr);
  }
  // The same, for an array that may hold texts among its objects: `text` gets those.
  template <typename Read, typename Text>
  bool array(const char* field, Read&& read, Text&& text) {
    const Json* value = find(field);
    if (value == nullptr || !is_array(field, *value)) return false;
    int index = 0;
    for (const Json& element : *value) {
      if constexpr (!std::same_as<std::remove_cvref_t<Text>, std::nullptr_t>) {
        if (const auto* word = element.get_ptr<const std::string*>()) {
          text(*word);
          ++index;
          continue;
        }
      }
      ObjectReader inner(*this, field, index++, element);
      if (!failed()) read(inner);
      inner.close();
      if (failed()) return false;
    }
    return true;
  }
  // The value as it is; nullptr: not given.
  const Json* value(const char* field) { return find(field); }

  // "<path of the field> <rule>"; kept if it is the first error.
  void fail(std::string_view field, std::string_view rule);
  bool failed() const { return root_->error_set_; }

  // The first error, or a field that was not asked for.
  Status finish();

 private:
  static constexpr std::size_t kMaxFields = 64;

  ObjectReader(ObjectReader& parent, const char* field, int index, const Json& json);
  const Json* find(const char* field);
  void close();  // looks for fields that were not asked for
  std::string path() const;
  bool is_array(const char* field, const Json& value);

  bool read(const char* field, const Json& value, std::string& out);
  bool read(const char* field, const Json& value, bool& out);
  bool read(const char* field, const Json& value, int& out);
  bool read(const char* field, const Json& value, std::int64_t& out);
  bool read(const char* field, const Json& value, std::uint64_t& out);
  bool read(const char* field, const Json& value, double& out);
  bool read(const char* field, const Json& value, std::vector<std::string>& out);
  bool read(const char* field, const Json& value, std::vector<int>& out);
  bool read(const char* field, const Json& value,
            std::vector<std::pair<std::string, std::string>>& out);
  bool read(const char* field, const Json& value,
            std::vector<std::pair<std::string, std::int64_t>>& out);

  const Json::object_t* fields_ = nullptr;  // nullptr: not an object, which is an error already
  ObjectReader* parent_ = nullptr;
  ObjectReader* root_ = this;
  std::string_view name_;
  int index_ = -1;
  std::size_t given_ = 0;  // of the fields asked for
  std::size_t asked_count_ = 0;
  std::array<const char*, kMaxFields> asked_;
  bool error_set_ = false;
  std::string error_;
};

}  // namespace gs
