// The form of every benchmark here: a table for people, and rows
// {"name","unit","ours","anchor","anchor_name","ratio"} as JSON in the file that BENCH_JSON names.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace gs::bench {

struct Row {
  std::string name;
  std::string unit;
  double ours = 0;
  double anchor = 0;  // 0: none
  std::string anchor_name;
  bool lower_is_better = true;

  // How many times better than the anchor; 0 where there is none.
  double ratio() const {
    if (anchor <= 0 || ours <= 0) return 0;
    return lower_is_better ? anchor / ours : ours / anchor;
  }
};

class Report {
 public:
  void add(const Row& row) {
    rows_.push_back(row);
    fmt::print("{:<62} {:>14} {:<8} {:>14} {:<40} {:>10}\n", row.name, number(row.ours), row.unit,
               row.anchor > 0 ? number(row.anchor) : "-", row.anchor_name,
               row.ratio() > 0 ? fmt::format("{:.2f}x", row.ratio()) : "-");
    std::fflush(stdout);
  }
  void header() const {
    fmt::print("{:<62} {:>14} {:<8} {:>14} {:<40} {:>10}\n", "benchmark", "ours", "unit", "anchor",
               "anchor is", "better by");
  }
  bool write() const {
    const char* path = std::getenv("BENCH_JSON");
    if (path == nullptr) return true;
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return false;
    fmt::print(file, "{{\"rows\":[");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      fmt::print(file,
                 "{}\n{{\"name\":\"{}\",\"unit\":\"{}\",\"ours\":{},\"anchor\":{},\"anchor_name\":"
                 "\"{}\",\"ratio\":{}}}",
                 i == 0 ? "" : ",", r.name, r.unit, r.ours,
                 r.anchor > 0 ? fmt::format("{}", r.anchor) : "null", r.anchor_name,
                 r.ratio() > 0 ? fmt::format("{}", r.ratio()) : "null");
    }
    fmt::print(file, "\n]}}\n");
    return std::fclose(file) == 0;
  }

 private:
  static std::string number(double value) {
    if (value >= 1000) return fmt::format("{:.0f}", value);
    return value >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.3f}", value);
  }
  std::vector<Row> rows_;
};

class Stopwatch {
 public:
  double us() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Samples {
  std::vector<double> us;
  double at(double quantile) {
    std::sort(us.begin(), us.end());
    return us.empty() ? 0
                      : us[static_cast<std::size_t>(quantile * static_cast<double>(us.size() - 1))];
  }
  double per_second() const {
    double sum = 0;
    for (const double sample : us) sum += sample;
    return sum > 0 ? static_cast<double>(us.size()) / sum * 1e6 : 0;
  }
};

}  // namespace gs::bench
