#include "wire/job_json.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

JobSpec full() {
  JobSpec spec;
  spec.tenant_id = "tenant-1";
  spec.name = "a \"quoted\" n\xc3\xa4me\\";
  spec.priority = 7;
  spec.gpu_count = 4;
  spec.gpu_memory_mb = 40'000;
  spec.gpu_model = "H100";
  spec.cpu_milli = 1'050;
  spec.memory_mb = 64'000;
  spec.gang_scheduling = true;
  spec.nodes = 2;
  spec.gpus_per_node = 2;
  spec.command = {"python", "train.py\n"};
  spec.args = {"--x", ""};
  spec.image = "pytorch:2.0";
  spec.environment = {{"A", "1"}, {"B", "\t"}};
  spec.working_dir = "/data";
  spec.user = "ada";
  spec.checkpoint = true;
  spec.checkpoint_path = "/shared/run";
  spec.max_runtime_minutes = 60;
  spec.expected_runtime_minutes = 30;
  spec.allow_preemption = false;
  spec.held = true;
  spec.depends_on = {{"job-1", false}, {"job-2", true}};
  spec.array_index = 3;
  spec.array_id = "job-9";
  spec.labels = {{"team", "x"}};
  spec.node_selector = {{"zone", "a"}};
  return spec;
}

void expect_read_again(const JobSpec& spec) {
  const std::string text = encode_job(spec);
  const Result<JobSpec> back = parse_job(text);
  ASSERT_TRUE(back.ok()) << text << ": " << back.error().message;
  EXPECT_EQ(*back, spec) << text;
}

TEST(JobText, is_read_again_as_it_was) {
  expect_read_again(full());
  JobSpec small;
  small.tenant_id = "t";
  small.name = "n";
  small.script = "#!/bin/sh\necho 1\n";
  small.gpu_count = 1;
  small.gpu_milli = 250;
  small.checkpoint = true;
  expect_read_again(small);
  for (const std::int64_t cpu_milli : {1, 10, 100, 999, 1'000, 1'001, 12'340}) {
    small.cpu_milli = cpu_milli;
    expect_read_again(small);
  }
}

TEST(JobText, names_the_part_of_a_dependency_that_is_wrong) {
  const auto error_of = [](const std::string& list) {
    return parse_job(R"({"tenant_id":"t","name":"n","depends_on":)" + list + "}").error().message;
  };
  EXPECT_EQ(error_of(R"(["job-1",{"condition":"any"}])"), "depends_on[1].job_id is required");
  EXPECT_EQ(error_of(R"([{"job_id":"job-1","condition":"maybe"}])"),
            "depends_on[0].condition must be one of ok, any; got 'maybe'");
  EXPECT_EQ(error_of(R"(["job-1","job-2",{"job_id":"job-3","of":1}])"),
            "unknown field 'depends_on[2].of'");
  EXPECT_EQ(error_of(R"([7])"), "depends_on[0] must be an object, got number");
  EXPECT_EQ(error_of(R"("job-1")"), "depends_on must be a list, got string");
}

TEST(JobText, says_only_what_differs_from_the_usual) {
  JobSpec spec;
  spec.tenant_id = "t";
  spec.name = "n";
  spec.cpu_milli = 500;
  EXPECT_EQ(encode_job(spec),
            R"({"tenant_id":"t","name":"n","priority":100,"gpu_count":0,"cpu_cores":0.500})");
}

}  // namespace
}  // namespace gs
