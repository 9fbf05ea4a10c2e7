#include "wire/yaml_json.hpp"

#include <charconv>

#include <yaml-cpp/yaml.h>

namespace gs {
namespace {

template <typename T>
bool is_number(const std::string& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

// Plain words follow YAML's core schema; what is quoted is a text.
Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null" || text == "~" || text.empty()) return nullptr;
  if (std::int64_t whole = 0; is_number(text, whole)) return whole;
  if (double number = 0; is_number(text, number)) return number;
  return text;
}

Json value(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& pair : node) {
      if (pair.first.Scalar() != "<<")
        object[pair.first.Scalar()] = value(pair.second);
      else
        object.update(value(pair.second));  // a merge key, which stands first
    }
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& element : node) list.push_back(value(element));
    return list;
  }
  return node.IsScalar() ? scalar(node) : Json();
}

}  // namespace

Result<Json> yaml_to_json(std::string_view yaml) {
  try {
    return value(YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& error) {
    return invalid(error.what());
  }
}

}  // namespace gs
