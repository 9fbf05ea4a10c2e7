// JsonText: writes JSON straight into a string. For texts that are written thousands of times a
// second, where a tree of values would cost more than everything else; elsewhere use Json.
//
// Texts must be UTF-8, as everything that was decoded is. Who calls keeps the brackets in pairs;
// commas are set here.
//
//   JsonText out;
//   out.open('{').field("name", spec.name).field("gpus", 8).close('}');
//   return out.take();
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gs {

class JsonText {
 public:
  explicit JsonText(std::size_t expected = 256) { text_.reserve(expected); }

  JsonText& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonText& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonText& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    first_ = true;  // its value follows without a comma
    return *this;
  }

  JsonText& value(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  JsonText& value(const std::string& text) { return value(std::string_view(text)); }
  template <std::integral T>
  JsonText& value(T number) {
    if constexpr (std::same_as<T, bool>) {
      return raw(number ? "true" : "false");
    } else {
      char digits[24];
      const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
      return raw({digits, static_cast<std::size_t>(end - digits)});
    }
  }
  JsonText& value(const std::vector<std::string>& list) {
    open('[');
    for (const std::string& one : list) value(one);
    return close(']');
  }
  JsonText& value(const std::vector<std::pair<std::string, std::string>>& pairs) {
    open('{');
    for (const auto& [name, one] : pairs) field(name, one);
    return close('}');
  }
  // A text that is JSON already.
  JsonText& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }

  template <typename T>
  JsonText& field(std::string_view name, const T& one) {
    return key(name).value(one);
  }

  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void quote(std::string_view text);

  std::string text_;
  bool first_ = true;
};

}  // namespace gs
