#include "wire/yaml_text.hpp"

#include <cctype>

#include "wire/yaml_json.hpp"

namespace gs {
namespace {

bool is_plain(const std::string& text) {
  if (text.empty() || text.front() == '-' || text.back() == '.') return false;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.' &&
        c != '/')
      return false;
  for (const char* word : {"yes", "no", "on", "off", "y", "n", "True", "False", "Null", "NULL"})
    if (text == word) return false;
  const Result<Json> read = yaml_to_json(text);
  return read && read->is_string() && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

// A text of JSON is one of YAML too.
std::string quoted(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return quoted(value);
}

bool is_simple(const Json& value) { return !value.is_structured() || value.empty(); }

void write(const Json& value, std::size_t depth, bool in_list, std::string& out) {
  const std::string indent(depth * 2, ' ');
  bool first = in_list;  // the first line stands behind the dash already
  const auto begin_line = [&] {
    if (!first) out += indent;
    first = false;
  };
  if (value.is_array()) {
    for (const Json& element : value) {
      begin_line();
      out += "- ";
      if (is_simple(element))
        out += scalar(element) + "\n";
      else
        write(element, depth + 1, true, out);
    }
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    begin_line();
    out += is_plain(key) ? key : quoted(Json(key));
    out += ":";
    if (is_simple(inner)) {
      out += " " + scalar(inner) + "\n";
    } else {
      out += "\n";
      write(inner, depth + 1, false, out);
    }
  }
}

}  // namespace

std::string yaml_text(const Json& value) {
  if (is_simple(value)) return scalar(value) + "\n";
  std::string out;
  write(value, 0, false, out);
  return out;
}

}  // namespace gs
