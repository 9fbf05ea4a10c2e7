#include "apps/gpu_cli/table.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gs::cli {
namespace {

constexpr char32_t kBroken = 0xFFFFFFFF;

// Takes one character from the front; kBroken and one byte where it is no UTF-8.
char32_t take(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t size = first < 0x80           ? 1
                           : (first >> 5) == 0x6  ? 2
                           : (first >> 4) == 0xE  ? 3
                           : (first >> 3) == 0x1E ? 4
                                                  : 0;
  char32_t code = size == 1 ? first : size == 0 ? kBroken : first & (0xFFU >> (size + 1));
  if (size == 0 || size > text.size()) {
    text.remove_prefix(1);
    return kBroken;
  }
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) >> 6) != 0x2) {
      text.remove_prefix(1);
      return kBroken;
    }
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  text.remove_prefix(size);
  return code;
}

using Range = std::pair<char32_t, char32_t>;

bool is_in(char32_t code, const Range* begin, const Range* end) {
  return std::any_of(begin, end,
                     [&](const Range& r) { return r.first <= code && code <= r.second; });
}

int width_of(char32_t code) {
  static constexpr Range kNone[] = {{0x300, 0x36F},   {0x483, 0x489},    {0x591, 0x5BD},
                                    {0x610, 0x61A},   {0x64B, 0x65F},    {0x900, 0x902},
                                    {0x200B, 0x200F}, {0x20D0, 0x20FF},  {0xFE00, 0xFE0F},
                                    {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
  static constexpr Range kWide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},
                                    {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},
                                    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  if (is_in(code, std::begin(kNone), std::end(kNone))) return 0;
  return is_in(code, std::begin(kWide), std::end(kWide)) ? 2 : 1;
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == kBroken ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

void pad(std::string& out, std::size_t columns) { out.append(columns, ' '); }

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += static_cast<std::size_t>(width_of(take(text)));
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t code = take(text);
    if (code == '\n' || code == '\t')
      out += ' ';
    else if (is_control(code))
      out += '?';
    else
      out += before.substr(0, before.size() - text.size());
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::string_view before = text;
    used += static_cast<std::size_t>(width_of(take(text)));
    if (used + 1 > width) break;
    out += before.substr(0, before.size() - text.size());
  }
  return width == 0 ? "" : out + "…";
}

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = cell.text.empty() ? "-" : printable(cell.text);
  row.resize(titles_.size(), Cell("-"));
  rows_.push_back(std::move(row));
}

std::string Table::text(bool colour) const {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles_) widths.push_back(display_width(title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i].text));
  std::string out;
  const auto put = [&](std::size_t i, const std::string& text, Paint with) {
    const std::size_t space = widths[i] - display_width(text);
    if (right_[i]) pad(out, space);
    out += paint(text, with, colour);
    const bool is_last = i + 1 == titles_.size();
    if (!right_[i] && !is_last) pad(out, space);
    out += is_last ? "\n" : "  ";
  };
  for (std::size_t i = 0; i < titles_.size(); ++i) put(i, titles_[i], Paint::Bold);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) put(i, row[i].text, row[i].paint);
  return out;
}

}  // namespace gs::cli
