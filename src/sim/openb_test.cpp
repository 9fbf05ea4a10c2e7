// The openb reader and checks on a folder made here; the real one is a yardstick of its own.
#include "sim/openb.hpp"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

namespace gs::openb {
namespace {

namespace fs = std::filesystem;

class OpenbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = fs::temp_directory_path() / (std::string("openb-") + test->name());
    fs::remove_all(folder);
    fs::create_directories(folder / "pods");
    fs::create_directories(folder / "arrivals");
    write("openb_node_list_gpu_node.csv",
          "sn,cpu_milli,memory_mib,gpu,model\na,32000,65536,2,P100\nb,32000,65536,4,T4\n");
    write("pods/openb_pod_list_default.csv.gz",  // plain text reads just as well
          "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
          "p2,4000,1024,1,1000,T4|V100\np0,2000,1024,1,500,\np1,1000,1024,0,0,\n");
    write("arrivals/arrival_default.csv.gz", "seed42,seed43\n0,2\n2,1\n0,\n");
    write("arrivals/nodeorder_default.csv.gz", "seed42,seed43\n1,0\n0,1\n");
  }
  void TearDown() override { fs::remove_all(folder); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
  }
  fs::path folder;
};

TEST_F(OpenbTest, ReadsPodsByNameAndOrdersPerSeed) {
  const auto workload = read_workload(folder, "default");
  ASSERT_TRUE(workload.ok()) << workload.error().message;
  ASSERT_EQ(workload->pods.size(), 3U);
  EXPECT_EQ(workload->pods[0].milli, 500);
  EXPECT_EQ(workload->pods[1].gpus, 0);
  EXPECT_EQ(workload->pods[2].models, (std::vector<std::string>{"T4", "V100"}));
  EXPECT_EQ(workload->arrivals.at(42), (std::vector<std::uint32_t>{0, 2, 0}));
  EXPECT_EQ(workload->arrivals.at(43), (std::vector<std::uint32_t>{2, 1}));
  double all = 0;
  for (const TypicalTask& task : workload->typical) all += task.share;
  EXPECT_NEAR(all, 1.0, 1e-12);
}

TEST_F(OpenbTest, AWorkloadWithoutItsOwnOrderUsesTheDefaultOne) {
  write(
      "pods/openb_pod_list_other.csv.gz",
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,1,1,1000\np1,1,1,1,1000\np2,1,1,2,1000\n");
  const auto names = list_workloads(folder);
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(*names, (std::vector<std::string>{"default", "other"}));
  const auto workload = read_workload(folder, "other");
  ASSERT_TRUE(workload.ok()) << workload.error().message;
  EXPECT_EQ(workload->arrivals.at(42).size(), 3U);
}

TEST_F(OpenbTest, SaysWhatIsWrongWithAFolder) {
  write("arrivals/arrival_default.csv.gz", "seed42\n7\n");
  const auto beyond = read_workload(folder, "default");
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.error().message.find("7 is not below 3"), std::string::npos);
  write("pods/openb_pod_list_default.csv.gz", "name,cpu_milli\np0,x\n");
  const auto columns = read_workload(folder, "default");
  ASSERT_FALSE(columns.ok());
  EXPECT_NE(columns.error().message.find("no column 'memory_mib'"), std::string::npos);
  Options options;
  options.selection.folder = folder / "nowhere";
  options.selection.policies = {"default"};
  EXPECT_EQ(run_openb(options), 2);
}

TEST_F(OpenbTest, APodThatFitsNowhereIsDroppedAndCounted) {
  const auto nodes = read_nodes(folder);
  ASSERT_TRUE(nodes.ok());
  Workload workload = *read_workload(folder, "default");
  workload.arrivals[42] = std::vector<std::uint32_t>(6, 2);  // four T4 for six pods
  for (const char* policy : {"default", "fgd", "bestfit"}) {
    const auto result = run(*nodes, workload, policy, 42, [](double) {});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->failed, 2) << policy;
    EXPECT_DOUBLE_EQ(result->allocation[100], 66.67) << policy;
    EXPECT_DOUBLE_EQ(result->allocation[17], 16.67) << policy;
    EXPECT_TRUE(std::isnan(result->allocation[130])) << policy;
  }
}

TEST_F(OpenbTest, RunsAtTheSameTimeComeOutInOrderAndAlike) {
  Selection selection{folder, {}, {"bestfit", "fgd", "default"}, {}, 1};
  const auto alone = run_all(selection);
  selection.jobs = 3;
  const auto together = run_all(selection);
  ASSERT_TRUE(alone.ok() && together.ok());
  ASSERT_EQ(alone->size(), 6U);
  ASSERT_EQ(together->size(), 6U);
  for (std::size_t i = 0; i < alone->size(); ++i) {
    EXPECT_EQ(together->at(i).policy, selection.policies[i / 2]);
    EXPECT_EQ(together->at(i).seed, i % 2 == 0 ? 42 : 43);
    EXPECT_EQ(together->at(i).failed, alone->at(i).failed);
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double a = alone->at(i).allocation[bin];
      const double b = together->at(i).allocation[bin];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "run " << i << " bin " << bin;
    }
  }
}

Run figures(const char* policy, int seed, double allocated, double fragmented) {
  Run run;
  run.workload = "w";
  run.policy = policy;
  run.seed = seed;
  run.allocation.fill(allocated);
  run.fragmentation.fill(fragmented);
  return run;
}

TEST(OpenbCheckTest, PublishedPoliciesMustComeOutAsPublished) {
  Published published;
  published.allocation[{"w", "fgd", 42}].fill(95.39);
  EXPECT_TRUE(check({figures("fgd", 42, 95.40, 4)}, published).at(0).holds);
  EXPECT_FALSE(check({figures("fgd", 42, 95.41, 4)}, published).at(0).holds);
  EXPECT_TRUE(check({figures("fgd", 43, 10, 4)}, published).empty());  // nothing to compare with
}

TEST(OpenbCheckTest, EveryPercentCountsInBothFigures) {
  Published published;
  published.allocation[{"w", "fgd", 42}].fill(95.39);
  published.fragmentation[{"w", "fgd", 42}].fill(4);
  published.fragmentation[{"w", "fgd", 42}][0] = std::nan("");  // not published: not compared
  openb::Run run = figures("fgd", 42, 95.39, 4);
  EXPECT_TRUE(check({run}, published).at(0).holds);
  EXPECT_TRUE(check({run}, published).at(1).holds);
  run.allocation[57] = 95.37;
  EXPECT_FALSE(check({run}, published).at(0).holds);
  run.fragmentation[3] = std::nan("");
  EXPECT_FALSE(check({run}, published).at(1).holds);
}

TEST(OpenbCheckTest, OursMustBeBetterInBothFigures) {
  const auto fgd = figures("fgd", 42, 95, 5);
  EXPECT_TRUE(check({fgd, figures("default", 42, 96, 4)}, {}).at(0).holds);
  EXPECT_FALSE(check({fgd, figures("default", 42, 95, 4)}, {}).at(0).holds);
  EXPECT_FALSE(check({fgd, figures("default", 42, 96, 5)}, {}).at(0).holds);
}

}  // namespace
}  // namespace gs::openb
