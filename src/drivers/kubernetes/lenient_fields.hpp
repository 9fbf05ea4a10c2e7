// Reads objects of somebody else's format: what is not asked for is not ours to judge, but a field
// of the wrong type is an error that names it ("clusters[dev].cluster.server must be a text").
//
// The first error is kept and what follows it does nothing. `null` counts as not given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace gs::kube {

class LenientFields {
 public:
  // `path` is how errors call the object; `error` is shared by all readers of one document.
  LenientFields(const nlohmann::json& object, std::string path, std::string& error)
      : object_(object), path_(std::move(path)), error_(error) {
    if (!object_.is_object() && !object_.is_null()) fail("", "must be an object");
  }

  const nlohmann::json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void text(const char* name, std::string& out) {
    if (const auto* value = find(name)) {
      if (value->is_string())
        out = value->get<std::string>();
      else
        fail(name, value->is_number() || value->is_boolean() ? "must be a text: put it in quotes"
                                                             : "must be a text");
    }
  }
  void flag(const char* name, bool& out) {
    if (const auto* value = find(name)) {
      if (value->is_boolean())
        out = value->get<bool>();
      else
        fail(name, "must be true or false");
    }
  }
  void texts(const char* name, std::vector<std::string>& out) {
    each(name, [&](const nlohmann::json& element, const std::string& path) {
      if (element.is_string())
        out.push_back(element.get<std::string>());
      else
        fail_at(path, "must be a text");
    });
  }
  // Calls read(element, its path) for each element.
  template <typename Read>
  void each(const char* name, Read&& read) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return fail(name, "must be a list");
    std::size_t index = 0;
    for (const auto& element : *value)
      read(element, path_of(name) + "[" + std::to_string(index++) + "]");
  }
  LenientFields object(const char* name) {
    static const nlohmann::json none;
    const auto* value = find(name);
    return {value == nullptr ? none : *value, path_of(name), error_};
  }

  void fail(std::string_view name, std::string_view rule) { fail_at(path_of(name), rule); }
  bool failed() const { return !error_.empty(); }
  std::string& error() { return error_; }
  std::string path_of(std::string_view name) const {
    if (path_.empty() || name.empty()) return path_ + std::string(name);
    return path_ + "." + std::string(name);
  }

 private:
  void fail_at(const std::string& path, std::string_view rule) {
    if (error_.empty()) error_ = (path.empty() ? "it" : path) + " " + std::string(rule);
  }

  const nlohmann::json& object_;
  std::string path_;
  std::string& error_;
};

}  // namespace gs::kube
