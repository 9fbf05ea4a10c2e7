// Metrics: counters, gauges and histograms that many threads write and Prometheus reads.
//
// Writing is an atomic addition; finding a series by its labels takes a lock, so hot paths keep
// the reference, which stays good as long as the registry. Memory is bounded: a family has at most
// kMaxSeries series, and what comes after counts as one with the label values "other".
//
//   Metrics metrics;
//   auto& requests = metrics.counters("http_requests_total", "Requests by ...", {"route",
//   "status"}); requests.with({"/api/v1/jobs", "200"}).add();
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/metrics_text.hpp"

namespace gs {

class Counter {
 public:
  void add(std::uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  void add(double change) { value_.fetch_add(change, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // upper ones, rising
  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  std::vector<std::uint64_t> counts() const;  // one more than bounds
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::deque<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

inline constexpr std::size_t kMaxSeries = 1000;

template <typename Series>
class Family {
 public:
  Family(std::string name, std::string help, std::vector<std::string> labels,
         std::vector<double> bounds = {})
      : name_(std::move(name)),
        help_(std::move(help)),
        labels_(std::move(labels)),
        bounds_(std::move(bounds)) {}

  // One value for each label.
  Series& with(std::initializer_list<std::string_view> values);
  void write(MetricsText& out) const;
  const std::string& name() const { return name_; }

 private:
  // So that a series is found without making strings.
  struct InOrder {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    }
  };
  std::unique_ptr<Series> make() const;

  std::string name_, help_;
  std::vector<std::string> labels_;
  std::vector<double> bounds_;
  mutable std::mutex mutex_;  // of the map; series are written without it
  std::map<std::vector<std::string>, std::unique_ptr<Series>, InOrder> series_;
};

// Names are without the namespace and unique; asking twice for one is a bug.
class Metrics {
 public:
  Family<Counter>& counters(std::string name, std::string help, std::vector<std::string> labels);
  Family<Gauge>& gauges(std::string name, std::string help, std::vector<std::string> labels);
  Family<Histogram>& histograms(std::string name, std::string help, std::vector<std::string> labels,
                                std::vector<double> bounds);
  Counter& counter(std::string name, std::string help);
  Gauge& gauge(std::string name, std::string help);

  // All families, by name.
  void write(MetricsText& out) const;

 private:
  template <typename T>
  T& keep(std::map<std::string, std::unique_ptr<T>>& families, std::unique_ptr<T> family);

  mutable std::mutex mutex_;  // of the maps
  std::map<std::string, std::unique_ptr<Family<Counter>>> counters_;
  std::map<std::string, std::unique_ptr<Family<Gauge>>> gauges_;
  std::map<std::string, std::unique_ptr<Family<Histogram>>> histograms_;
};

}  // namespace gs
