#include "net/metrics.hpp"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace gs {
namespace {

std::string text_of(const Metrics& metrics) {
  MetricsText out("x");
  metrics.write(out);
  return out.text();
}

TEST(Metrics, are_written_with_help_and_type) {
  Metrics metrics;
  metrics.counter("a_total", "What \\ it\nis.").add(3);
  metrics.gauge("g", "A gauge.").set(-1.5);
  metrics.histograms("h", "A histogram.", {"k"}, {0.5, 1}).with({"v"}).observe(0.75);
  EXPECT_EQ(text_of(metrics),
            "# HELP x_a_total What \\\\ it\\nis.\n# TYPE x_a_total counter\nx_a_total 3\n"
            "# HELP x_g A gauge.\n# TYPE x_g gauge\nx_g -1.5\n"
            "# HELP x_h A histogram.\n# TYPE x_h histogram\n"
            "x_h_bucket{k=\"v\",le=\"0.5\"} 0\nx_h_bucket{k=\"v\",le=\"1\"} 1\n"
            "x_h_bucket{k=\"v\",le=\"+Inf\"} 1\nx_h_sum{k=\"v\"} 0.75\nx_h_count{k=\"v\"} 1\n");
}

TEST(Metrics, label_values_are_escaped) {
  Metrics metrics;
  metrics.gauges("g", "h", {"k"}).with({"a\"b\\c\nd"}).set(1);
  EXPECT_NE(text_of(metrics).find(R"(x_g{k="a\"b\\c\nd"} 1)"), std::string::npos);
}

TEST(Metrics, the_same_labels_are_the_same_series) {
  Metrics metrics;
  auto& family = metrics.counters("c_total", "h", {"a", "b"});
  Counter& one = family.with({"1", "2"});
  one.add();
  family.with({"1", "2"}).add();
  family.with({"2", "1"}).add();
  EXPECT_EQ(one.value(), 2U);
}

TEST(Metrics, labels_that_callers_choose_do_not_fill_the_memory) {
  Metrics metrics;
  auto& family = metrics.counters("c_total", "h", {"path"});
  for (int i = 0; i < 5000; ++i) family.with({std::to_string(i)}).add();
  EXPECT_EQ(family.with({"other"}).value(), 5000 - kMaxSeries);
  const std::string text = text_of(metrics);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')),
            2 + kMaxSeries + 1);
}

TEST(Metrics, numbers_keep_their_value) {
  Metrics metrics;
  metrics.counter("c_total", "h").add(9'007'199'254'740'000ULL - 1);
  metrics.gauge("g", "h").set(0.1);
  metrics.gauge("i", "h").set(std::numeric_limits<double>::infinity());
  const std::string text = text_of(metrics);
  EXPECT_NE(text.find("x_c_total 9007199254739999\n"), std::string::npos) << text;
  EXPECT_NE(text.find("x_g 0.1\n"), std::string::npos);
  EXPECT_NE(text.find("x_i +Inf\n"), std::string::npos);
}

TEST(Metrics, threads_lose_nothing) {
  Metrics metrics;
  auto& counters = metrics.counters("c_total", "h", {"k"});
  auto& histograms = metrics.histograms("h", "h", {}, {1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counters.with({std::to_string(i % 3)}).add();
        histograms.with({}).observe(i % 2 == 0 ? 0.5 : 2);
        if (i % 100 == 0) (void)text_of(metrics);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::uint64_t sum = 0;
  for (const char* k : {"0", "1", "2"}) sum += counters.with({k}).value();
  EXPECT_EQ(sum, 4000U);
  EXPECT_EQ(histograms.with({}).counts(), (std::vector<std::uint64_t>{2000, 2000}));
  EXPECT_EQ(histograms.with({}).sum(), 5000.0);
}

}  // namespace
}  // namespace gs
