#include "net/metrics_text.hpp"

#include <cmath>

#include <fmt/format.h>

namespace gs {
namespace {

void append_escaped(std::string& out, std::string_view text, bool in_quotes) {
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '"' && in_quotes)
      out += "\\\"";
    else
      out += c;
  }
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  // Counts are written whole; 2^53 is where doubles end to be exact.
  if (value == std::floor(value) && std::abs(value) < 9e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

}  // namespace

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  plain_family(fmt::format("{}_{}", namespace_, name), type, help);
}

void MetricsText::plain_family(std::string_view name, std::string_view type,
                               std::string_view help) {
  family_ = name;
  text_ += fmt::format("# HELP {} ", family_);
  append_escaped(text_, help, false);
  text_ += fmt::format("\n# TYPE {} {}\n", family_, type);
}

void MetricsText::sample(double value, const Labels& labels) { line("", labels, value); }

void MetricsText::line(std::string_view suffix, const Labels& labels, double value) {
  text_ += family_;
  text_ += suffix;
  char separator = '{';
  for (const auto& [name, text] : labels) {
    text_ += separator;
    text_ += name;
    text_ += "=\"";
    append_escaped(text_, text, true);
    text_ += '"';
    separator = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += ' ';
  text_ += number(value);
  text_ += '\n';
}

void MetricsText::histogram(std::span<const double> bounds, std::span<const std::uint64_t> counts,
                            double sum, const Labels& labels) {
  Labels with_bound = labels;
  with_bound.emplace_back("le", "");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    total += i < counts.size() ? counts[i] : 0;
    const std::string bound = i < bounds.size() ? number(bounds[i]) : "+Inf";
    with_bound.back().second = bound;
    line("_bucket", with_bound, static_cast<double>(total));
  }
  line("_sum", labels, sum);
  line("_count", labels, static_cast<double>(total));
}

}  // namespace gs
