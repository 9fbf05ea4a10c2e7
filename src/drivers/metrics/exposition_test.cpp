#include "drivers/metrics/exposition.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "drivers/metrics/strict_parser_test.hpp"
#include "net/door_metrics.hpp"

namespace gs {
namespace {

Figures sample_figures() {
  Figures f;
  f.time = Instant{1'800'000'000'500};
  f.turn = 7;
  f.leader = true;
  f.jobs_total[static_cast<std::size_t>(RunState::Completed)] = 12;
  f.jobs[static_cast<std::size_t>(RunState::Running)] = 3;
  f.queue_size = 5;
  f.preemptions_total = 2;
  f.rejections_total = {{"queue_full", 1}, {"quota \"a\\b\"\nc", 4}};
  f.scheduling_latency.observe(0.0003);
  f.scheduling_latency.observe(0.0005);
  f.scheduling_latency.observe(99);
  f.phases["allocate"] = Distribution(short_times());
  f.phases["allocate"].observe(0.002);
  f.nodes.push_back(
      {.name = "n1",
       .online = true,
       .agent_lag = milliseconds(1500),
       .gpus = {{.index = 0,
                 .model = "H100",
                 .utilization_percent = 87.5,
                 .temperature_c = 61,
                 .memory_used_mb = 2,
                 .memory_total_mb = 81'920},
                {.index = 1, .model = "H100", .available = false},
                {.index = 2, .model = "A100", .healthy = false, .available = false}}});
  f.tenants.push_back({.id = "tenant-1", .gpu_milli = 2500, .running = 2, .gpu_ms = 1500});
  return f;
}

struct Doors {
  Metrics registry;
  DoorMetrics doors{registry};
};

std::string sample_page(const std::string& name_space = "gpu_scheduler") {
  Doors d;
  d.doors.http("/api/v1/jobs", "POST", 201, 0.004);
  d.doors.http("/api/v1/jobs", "POST", 429, 0.0001);
  d.doors.grpc("SubmitJob", "OK", 0.5);
  d.doors.event_streams.add(2);
  d.doors.event_streams.add(-1);
  return exposition(name_space, sample_figures(), d.registry, process_figures());
}

TEST(Exposition, is_what_a_strict_reader_accepts) {
  const strict::Page page = strict::parse(sample_page());
  for (const std::string& error : page.errors) ADD_FAILURE() << error;
  EXPECT_GT(page.families.size(), 40U);
  EXPECT_TRUE(strict::parse(exposition("x", Figures{}, Metrics{}, {})).errors.empty());
}

TEST(Exposition, has_the_names_and_types_that_users_know) {
  const strict::Page page = strict::parse(sample_page());
  const std::map<std::string, std::string> known = {
      {"gpu_scheduler_jobs_total", "counter"},
      {"gpu_scheduler_queue_size", "gauge"},
      {"gpu_scheduler_gpu_utilization", "gauge"},
      {"gpu_scheduler_scheduling_latency", "histogram"},
      {"gpu_scheduler_preemptions_total", "counter"}};
  for (const auto& [name, type] : known) {
    ASSERT_TRUE(page.families.contains(name)) << name;
    EXPECT_EQ(page.families.at(name).type, type) << name;
  }
}

TEST(Exposition, the_values_are_the_figures) {
  const auto values = sample_values(sample_page(), "");
  const auto value = [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? -1 : found->second;
  };
  EXPECT_EQ(value(R"(gpu_scheduler_jobs_total{state="completed"})"), 12);
  EXPECT_EQ(value(R"(gpu_scheduler_jobs_total{state="failed"})"), 0);
  EXPECT_EQ(value(R"(gpu_scheduler_jobs_by_state{state="running"})"), 3);
  EXPECT_EQ(value("gpu_scheduler_queue_size"), 5);
  EXPECT_EQ(value(R"(gpu_scheduler_rejections_total{reason="quota \"a\\b\"\nc"})"), 4);
  EXPECT_EQ(value(R"(gpu_scheduler_scheduling_latency_bucket{le="0.00025"})"), 0);
  EXPECT_EQ(value(R"(gpu_scheduler_scheduling_latency_bucket{le="0.0005"})"), 2);  // inclusive
  EXPECT_EQ(value(R"(gpu_scheduler_scheduling_latency_bucket{le="10"})"), 2);
  EXPECT_EQ(value(R"(gpu_scheduler_scheduling_latency_bucket{le="+Inf"})"), 3);
  EXPECT_EQ(value("gpu_scheduler_scheduling_latency_count"), 3);
  EXPECT_EQ(value("gpu_scheduler_leader"), 1);
  EXPECT_EQ(value(R"(gpu_scheduler_gpu_utilization{node="n1",gpu="0"})"), 87.5);
  EXPECT_EQ(value(R"(gpu_scheduler_gpus{node="n1",model="H100"})"), 2);
  EXPECT_EQ(value(R"(gpu_scheduler_gpus_available{node="n1",model="H100"})"), 1);
  EXPECT_EQ(value(R"(gpu_scheduler_gpus_unhealthy{node="n1",model="A100"})"), 1);
  EXPECT_EQ(value(R"(gpu_scheduler_gpu_memory_used_bytes{node="n1",gpu="0"})"), 2 * 1048576);
  EXPECT_EQ(value(R"(gpu_scheduler_agent_lag_seconds{node="n1"})"), 1.5);
  EXPECT_EQ(value(R"(gpu_scheduler_tenant_gpus{tenant="tenant-1"})"), 2.5);
  EXPECT_EQ(
      value(
          R"(gpu_scheduler_http_requests_total{route="/api/v1/jobs",method="POST",status="429"})"),
      1);
  EXPECT_EQ(value("gpu_scheduler_event_streams"), 1);
  EXPECT_EQ(value("gpu_scheduler_published_timestamp_seconds"), 1'800'000'000.5);
  EXPECT_EQ(sample_values(sample_page(), "gpu_scheduler_queue_size").size(), 1U);
}

TEST(Exposition, the_namespace_is_the_operator_s) {
  const strict::Page page = strict::parse(sample_page("lab"));
  for (const auto& [name, family] : page.families)
    EXPECT_TRUE(name.starts_with("lab_") || name.starts_with("process_")) << name;
}

TEST(Exposition, the_documentation_lists_every_metric_with_its_type) {
  std::map<std::string, std::string> documented;
  std::ifstream file("docs/metrics.md");
  const std::regex row(R"(^\| `([a-z_]+)` \| ([a-z]+) \|.*)");
  for (std::string line; std::getline(file, line);)
    if (std::smatch match; std::regex_match(line, match, row)) documented[match[1]] = match[2];
  // Those of the Kubernetes scheduler, its client and the webhook are on other programs' pages.
  std::erase_if(documented, [](const auto& metric) {
    return metric.first.starts_with("gpu_scheduler_kube_") ||
           metric.first.starts_with("gpu_scheduler_webhook_") ||
           metric.first.starts_with("topology_");
  });
  std::map<std::string, std::string> there;
  for (const auto& [name, family] : strict::parse(sample_page()).families)
    there[name] = family.type;
  EXPECT_EQ(documented, there);
}

TEST(Process, figures_are_those_of_a_living_process) {
  const ProcessFigures p = process_figures();
  EXPECT_GT(p.resident_bytes, 1 << 20);
  EXPECT_GE(p.virtual_bytes, p.resident_bytes);
  EXPECT_GE(p.open_fds, 3);
  EXPECT_GT(p.max_fds, p.open_fds);
  EXPECT_GE(p.threads, 1);
  EXPECT_GT(p.start_time_seconds, 1.7e9);
}

// The parser itself can say no.
TEST(StrictParser, refuses_what_is_wrong) {
  const std::string head = "# HELP a_total h\n# TYPE a_total counter\n";
  EXPECT_TRUE(strict::parse(head + "a_total 1\n").errors.empty());
  for (const char* bad : {"a_total 1", "a_total  1\n", "b 1\n", "a_total{x=\"1} 1\n",
                          "a_total{x=\"\\q\"} 1\n", "a_total{x=\"1\" y=\"2\"} 1\n", "a_total x\n",
                          "a_total -1\n", "a_total 1\na_total 1\n", "a_total{9=\"1\"} 1\n"})
    EXPECT_FALSE(strict::parse(head + bad).errors.empty()) << bad;
  EXPECT_FALSE(strict::parse("a 1\n").errors.empty());
  EXPECT_FALSE(strict::parse("# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\n"
                             "h_count 1\n")
                   .errors.empty());
}

}  // namespace
}  // namespace gs
