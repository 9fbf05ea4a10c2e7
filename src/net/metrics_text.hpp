// Writes metrics in Prometheus' text format 0.0.4.
//
// Families are written one after the other, each with its HELP and TYPE first and all its samples
// together; names begin with the namespace.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gs {

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  explicit MetricsText(std::string name_space) : namespace_(std::move(name_space)) {}

  // Begins a family; type is "counter", "gauge" or "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Begins a family whose name is not ours to choose ("process_open_fds").
  void plain_family(std::string_view name, std::string_view type, std::string_view help);
  void sample(double value, const Labels& labels = {});
  // `counts` has one more than `bounds`, and is not cumulative.
  void histogram(std::span<const double> bounds, std::span<const std::uint64_t> counts, double sum,
                 const Labels& labels = {});

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view suffix, const Labels& labels, double value);

  std::string namespace_;
  std::string family_;
  std::string text_;
};

}  // namespace gs
