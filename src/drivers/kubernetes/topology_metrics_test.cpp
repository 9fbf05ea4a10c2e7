#include "drivers/kubernetes/topology_metrics.hpp"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "model/sample_test.hpp"

namespace gs::kube {
namespace {

constexpr Instant kNow{1'000'000};

Pod pod_of(const std::string& name, const std::string& owner) {
  Pod pod;
  pod.meta.ns = "default";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  if (!owner.empty()) pod.meta.owners.push_back({"batch/v1", "Job", owner, owner, true});
  return pod;
}

PodBound bound(const Pod& pod) {
  return {{pod.meta.ns, pod.meta.name, pod.meta.uid}, BindFailure::None, -1, {}, {}};
}

class TopologyMetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.handle(SetTopology{{"leaf"}}, kNow));
    for (const char* name : {"a", "b"}) {
      Node node = sample_node(name, 4, "H100-SXM5-80GB");
      node.domain = {std::string("leaf-") + name};
      ASSERT_TRUE(engine_.handle(PutNode{node}, kNow));
    }
    Tenant tenant;
    tenant.id = "t";
    ASSERT_TRUE(engine_.handle(PutTenant{tenant}, kNow));
    Job job;
    job.id = "j";
    job.tenant = "t";
    job.groups.emplace_back();
    job.groups.back().request.gpu.count = 3;
    ASSERT_TRUE(engine_.handle(SubmitJob{job}, kNow));
    engine_.tick(kNow);
  }
  bool has(const std::string& line) {
    MetricsText text("topology");
    metrics_.write(text, engine_.cluster());
    return text.text().find(line + "\n") != std::string::npos;
  }
  Engine engine_;
  TopologyMetrics metrics_;
};

TEST_F(TopologyMetricsTest, TellsHowFullTheDomainsAre) {
  EXPECT_TRUE(has("topology_gpu_allocation_ratio 0.375"));
  const bool on_a = has("topology_domain_utilization_ratio{level=\"leaf\",domain=\"leaf-a\"} 0.75");
  const std::string used = on_a ? "leaf-a" : "leaf-b", idle = on_a ? "leaf-b" : "leaf-a";
  const auto labels = [](const std::string& domain) {
    return "{level=\"leaf\",domain=\"" + domain + "\"}";
  };
  EXPECT_TRUE(has("topology_domain_utilization_ratio" + labels(used) + " 0.75"));
  EXPECT_TRUE(has("topology_domain_utilization_ratio" + labels(idle) + " 0"));
  EXPECT_TRUE(has("topology_scheduler_domain_fragmentation_ratio" + labels(used) + " 1"));
  EXPECT_TRUE(has("topology_scheduler_domain_fragmentation_ratio" + labels(idle) + " 0"));
}

TEST_F(TopologyMetricsTest, LatencyIsFromTheFirstSightToTheBinding) {
  const Pod pod = pod_of("p", "");
  metrics_.waits(pod, kNow);
  metrics_.waits(pod, kNow + seconds(1));
  metrics_.ended(bound(pod), &pod, kNow + seconds(3));
  EXPECT_TRUE(has("topology_scheduler_latency_seconds_sum 3"));
  EXPECT_TRUE(has("topology_scheduler_latency_seconds_count 1"));
  EXPECT_TRUE(has("topology_placement_decisions_total{result=\"bound\"} 1"));
}

TEST_F(TopologyMetricsTest, ARecoveryEndsWithTheLastReplacement) {
  for (const char* name : {"p-0", "p-1"})
    metrics_.evicted(pod_of(name, "job"), "NodeNotReady", kNow);
  metrics_.evicted(pod_of("q", "other"), "Preempted", kNow);
  const Pod first = pod_of("p-2", "job"), second = pod_of("p-3", "job"),
            other = pod_of("r", "other");
  metrics_.ended(bound(first), &first, kNow + seconds(1));
  metrics_.ended(bound(other), &other, kNow + seconds(1));
  EXPECT_TRUE(has("topology_scheduler_recovery_duration_seconds_count 0"));
  metrics_.ended(bound(second), &second, kNow + seconds(2));
  EXPECT_TRUE(has("topology_scheduler_recovery_duration_seconds_count 1"));
  EXPECT_TRUE(has("topology_scheduler_recovery_duration_seconds_sum 2"));
}

TEST_F(TopologyMetricsTest, TheDocumentationListsEachWithItsType) {
  MetricsText text("topology");
  metrics_.write(text, engine_.cluster());
  std::istringstream page(text.text());
  std::ifstream file("docs/metrics.md");
  std::set<std::string> there, documented;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("# TYPE ")) there.insert(line.substr(7));
  const std::regex row(R"(^\| `(topology_[a-z_]+)` \| ([a-z]+) \|.*)");
  for (std::string line; std::getline(file, line);)
    if (std::smatch match; std::regex_match(line, match, row))
      documented.insert(match[1].str() + " " + match[2].str());
  EXPECT_EQ(documented, there);
}

}  // namespace
}  // namespace gs::kube
