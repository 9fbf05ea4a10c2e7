#include "wire/json_text.hpp"

namespace gs {
namespace {

// What stands behind the backslash; 0: it is written as it is; 'u': as its number.
char escape_of(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return static_cast<unsigned char>(c) < 0x20 ? 'u' : '\0';
  }
}

}  // namespace

void JsonText::quote(std::string_view text) {
  text_ += '"';
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char escape = escape_of(text[i]);
    if (escape == '\0') continue;
    text_.append(text, written, i - written);
    written = i + 1;
    text_ += '\\';
    text_ += escape;
    if (escape != 'u') continue;
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text[i]);
    text_ += {'0', '0', kHex[byte >> 4], kHex[byte & 15]};
  }
  text_.append(text, written);
  text_ += '"';
}

}  // namespace gs
