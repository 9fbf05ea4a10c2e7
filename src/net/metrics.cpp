#include "net/metrics.hpp"

#include <algorithm>
#include <type_traits>

#include "base/check.hpp"

namespace gs {
namespace {

const char* type_of(const Counter*) { return "counter"; }
const char* type_of(const Gauge*) { return "gauge"; }
const char* type_of(const Histogram*) { return "histogram"; }

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> out;
  for (const auto& count : counts_) out.push_back(count.load(std::memory_order_relaxed));
  return out;
}

template <typename Series>
std::unique_ptr<Series> Family<Series>::make() const {
  if constexpr (std::is_same_v<Series, Histogram>)
    return std::make_unique<Histogram>(bounds_);
  else
    return std::make_unique<Series>();
}

template <typename Series>
Series& Family<Series>::with(std::initializer_list<std::string_view> values) {
  CHECK_MSG(values.size() == labels_.size(), name_);
  const std::lock_guard lock(mutex_);
  if (const auto found = series_.find(values); found != series_.end()) return *found->second;
  std::vector<std::string> key(values.begin(), values.end());
  if (series_.size() >= kMaxSeries) key.assign(labels_.size(), "other");
  const auto place = series_.try_emplace(std::move(key)).first;
  if (place->second == nullptr) place->second = make();
  return *place->second;
}

template <typename Series>
void Family<Series>::write(MetricsText& out) const {
  const std::lock_guard lock(mutex_);
  out.family(name_, type_of(static_cast<const Series*>(nullptr)), help_);
  for (const auto& [values, series] : series_) {
    MetricsText::Labels labels;
    for (std::size_t i = 0; i < values.size(); ++i) labels.emplace_back(labels_[i], values[i]);
    if constexpr (std::is_same_v<Series, Histogram>)
      out.histogram(series->bounds(), series->counts(), series->sum(), labels);
    else
      out.sample(static_cast<double>(series->value()), labels);
  }
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

template <typename T>
T& Metrics::keep(std::map<std::string, std::unique_ptr<T>>& families, std::unique_ptr<T> family) {
  const std::lock_guard lock(mutex_);
  const std::string name = family->name();
  CHECK_MSG(!counters_.contains(name) && !gauges_.contains(name) && !histograms_.contains(name),
            name);
  return *(families[name] = std::move(family));
}

Family<Counter>& Metrics::counters(std::string name, std::string help,
                                   std::vector<std::string> labels) {
  return keep(counters_, std::make_unique<Family<Counter>>(std::move(name), std::move(help),
                                                           std::move(labels)));
}

Family<Gauge>& Metrics::gauges(std::string name, std::string help,
                               std::vector<std::string> labels) {
  return keep(gauges_,
              std::make_unique<Family<Gauge>>(std::move(name), std::move(help), std::move(labels)));
}

Family<Histogram>& Metrics::histograms(std::string name, std::string help,
                                       std::vector<std::string> labels,
                                       std::vector<double> bounds) {
  return keep(histograms_,
              std::make_unique<Family<Histogram>>(std::move(name), std::move(help),
                                                  std::move(labels), std::move(bounds)));
}

Counter& Metrics::counter(std::string name, std::string help) {
  return counters(std::move(name), std::move(help), {}).with({});
}

Gauge& Metrics::gauge(std::string name, std::string help) {
  return gauges(std::move(name), std::move(help), {}).with({});
}

void Metrics::write(MetricsText& out) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, family] : counters_) family->write(out);
  for (const auto& [name, family] : gauges_) family->write(out);
  for (const auto& [name, family] : histograms_) family->write(out);
}

}  // namespace gs
