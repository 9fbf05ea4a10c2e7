#include "sim/scenario_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/nearest_word.hpp"

namespace gs::scenario {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool is_key(const std::string& text) {
  return !text.empty() && std::islower(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::islower(static_cast<unsigned char>(c)) != 0 ||
                  std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
         });
}

Word word_of(const std::string& raw, bool quoted) {
  const auto equals = raw.find('=');
  if (!quoted && equals != std::string::npos && is_key(raw.substr(0, equals)))
    return {raw.substr(0, equals), raw.substr(equals + 1), false};
  return {"", raw, quoted};
}

// Quotes may surround a whole word or the value of a key; what is in them is taken as it is.
Result<Line> split_line(int number, const std::string& text) {
  Line line;
  line.number = number;
  std::size_t i = 0;
  std::size_t end = 0;
  while (true) {
    while (i < text.size() && is_blank(text[i])) ++i;
    if (i >= text.size() || text[i] == '#') break;
    std::string word;
    const bool quoted = text[i] == '"';
    bool open = false;
    for (; i < text.size() && (open || !is_blank(text[i])); ++i) {
      if (text[i] == '"')
        open = !open;
      else
        word += text[i];
    }
    if (open) return at_line(number, "a quote is not closed");
    line.words.push_back(word_of(word, quoted));
    end = i;
  }
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin != std::string::npos && end > begin) line.text = text.substr(begin, end - begin);
  return line;
}

// The first `[low..high]` of a line, outside of quotes and comments.
struct Range {
  std::size_t begin = 0, end = 0;
  int low = 0, high = -1;
};

std::optional<Range> find_range(const std::string& text) {
  constexpr int kMost = 100'000;
  const std::size_t limit = std::min(text.size(), text.find_first_of("\"#"));
  const std::size_t open = text.find('[');
  const std::size_t dots = open == std::string::npos ? open : text.find("..", open);
  const std::size_t close = dots == std::string::npos ? dots : text.find(']', dots);
  if (close == std::string::npos || close >= limit) return std::nullopt;
  Range range{open, close + 1, 0, -1};
  const auto number = [&](std::size_t from, std::size_t to, int& n) {
    const auto [stop, error] = std::from_chars(text.data() + from, text.data() + to, n);
    return error == std::errc{} && stop == text.data() + to;
  };
  const bool good = number(open + 1, dots, range.low) && number(dots + 2, close, range.high) &&
                    range.low >= 0 && range.high >= range.low && range.high - range.low < kMost;
  return good ? std::optional(range) : std::nullopt;
}

// All the ways to fill the ranges, first range outermost.
void expand(const std::string& text, int depth, std::vector<std::string>& out) {
  constexpr int kMostRanges = 4;
  const std::optional<Range> range = find_range(text);
  if (!range || depth > kMostRanges) {
    out.push_back(text);
    return;
  }
  const std::string mark = fmt::format("{{{}}}", depth);
  for (int n = range->low; n <= range->high; ++n) {
    std::string filled = text.substr(0, range->begin) + std::to_string(n) + text.substr(range->end);
    for (auto at = filled.find(mark); at != std::string::npos; at = filled.find(mark))
      filled.replace(at, mark.size(), std::to_string(n));
    expand(filled, depth + 1, out);
  }
}

// The longest decimal number at the front; `rest` is what follows.
std::optional<double> leading_number(std::string_view text, std::string_view& rest) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

Error at_line(int number, const std::string& message) {
  return invalid(fmt::format("{}: {}", number, message));
}

Result<std::vector<Block>> read_blocks(const std::string& text) {
  std::vector<Block> blocks;
  std::size_t family = 0;  // where the blocks begin that indented lines belong to
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.size(), text.find('\n', begin));
    const std::string raw = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const bool indented = !raw.empty() && is_blank(raw[0]);
    std::vector<std::string> expanded;
    if (indented)
      expanded.push_back(raw);
    else
      expand(raw, 1, expanded);
    bool first = true;
    for (const std::string& one : expanded) {
      Result<Line> line = split_line(number, one);
      if (!line) return line.error();
      if (line->words.empty()) continue;
      if (!indented) {
        if (first) family = blocks.size();
        blocks.push_back({*line, {}});
      } else if (blocks.empty()) {
        return at_line(number, "an indented line belongs to a line before it");
      } else {
        for (std::size_t i = family; i < blocks.size(); ++i) blocks[i].body.push_back(*line);
      }
      first = false;
    }
  }
  return blocks;
}

std::string unknown(const std::string& what, const std::string& word,
                    const std::vector<std::string>& known) {
  std::string message = fmt::format("unknown {} '{}'", what, word);
  const std::string_view meant = nearest_word(word, known);
  if (!meant.empty()) return message + fmt::format(" (did you mean '{}'?)", meant);
  return message + fmt::format(" (known: {})", fmt::join(known, ", "));
}

std::int64_t Value::number() const {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
  if (error != std::errc{} || end != text_.data() + text_.size())
    fail(fmt::format("'{}' is not a whole number", text_));
  return n;
}

int Value::integer() const {
  const std::int64_t n = number();
  if (n < -1'000'000'000 || n > 1'000'000'000) fail(fmt::format("'{}' is too large", text_));
  return static_cast<int>(std::clamp<std::int64_t>(n, -1'000'000'000, 1'000'000'000));
}

double Value::decimal() const {
  std::string_view rest;
  const auto n = leading_number(text_, rest);
  if (!n || !rest.empty()) fail(fmt::format("'{}' is not a number", text_));
  return n.value_or(0);
}

Duration Value::duration() const {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}};
  double ms = 0;
  std::string_view rest = text_;
  if (rest == "0") return {};
  while (!rest.empty()) {
    const auto n = leading_number(rest, rest);
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const auto& u) { return rest.rfind(u.first, 0) == 0; });
    if (!n || unit == std::end(kUnits) || *n < 0 || *n > 1e9) {
      fail(fmt::format("'{}' is not a time such as 90s, 10m or 1h30m", text_));
      return {};
    }
    ms += *n * unit->second;
    rest.remove_prefix(unit->first.size());
  }
  if (text_.empty()) fail("a time is missing");
  return {std::llround(ms)};
}

std::int64_t Value::bytes() const {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1}};
  std::string_view rest;
  const auto n = leading_number(text_, rest);
  const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                 [&](const auto& u) { return rest == u.first; });
  if (!n || *n < 0 || *n > 1e15 || (unit == std::end(kUnits) && *n != 0)) {
    fail(fmt::format("'{}' is not an amount of memory such as 80GiB", text_));
    return 0;
  }
  return unit == std::end(kUnits) ? 0 : std::llround(*n * unit->second);
}

std::int64_t Value::mib() const { return bytes() / (1024 * 1024); }

std::int64_t Value::milli() const {
  std::string_view rest;
  const auto n = leading_number(text_, rest);
  if (!n || !(rest.empty() || rest == "m") || *n < 0 || *n > 1e12) {
    fail(fmt::format("'{}' is not an amount such as 4, 0.5 or 500m", text_));
    return 0;
  }
  return std::llround(*n * (rest.empty() ? 1000 : 1));
}

bool Value::flag() const {
  return one_of<bool>({{"yes", true},
                       {"no", false},
                       {"on", true},
                       {"off", false},
                       {"true", true},
                       {"false", false}});
}

std::vector<std::string> Value::list(char separator) const {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text_.size();) {
    const std::size_t end = std::min(text_.size(), text_.find(separator, begin));
    if (end > begin) parts.push_back(text_.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<int> Value::numbers() const {
  constexpr int kMost = 4096;
  std::vector<int> all;
  for (const std::string& part : list()) {
    const std::size_t dash = part.find('-', 1);
    const int low = with(part.substr(0, dash)).integer();
    const int high = dash == std::string::npos ? low : with(part.substr(dash + 1)).integer();
    if (high < low || high - low > kMost) {
      fail(fmt::format("'{}' is not a list of numbers such as 0-3,6", text_));
      return all;
    }
    for (int n = low; n <= high; ++n) all.push_back(n);
  }
  return all;
}

std::pair<std::string, std::string> Value::split(char separator) const {
  const std::size_t at = text_.rfind(separator);
  if (at == std::string::npos) return {text_, ""};
  return {text_.substr(0, at), text_.substr(at + 1)};
}

}  // namespace gs::scenario
