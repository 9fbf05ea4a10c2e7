#include "agent/order.hpp"

#include <gtest/gtest.h>

#include "agent/simulated_gpus.hpp"

namespace gs::agent {
namespace {

// Real as far as an order can tell: named by UUIDs.
class PretendRealGpus final : public GpuSource {
 public:
  Gpus list() override { return simulated_gpus("2xH200", "").value()->list(); }
  std::vector<GpuSample> sample() override { return {}; }
  bool simulated() const override { return false; }
  std::string describe() const override { return ""; }
  Result<std::string> mig_uuid(int, const std::string&, int start, bool create) override {
    if (!create && start > 3) return not_found("there is no such instance");
    return "MIG-" + std::to_string(start);
  }
};

TEST(Order, names_real_devices_by_uuid) {
  PretendRealGpus source;
  const Gpus gpus = source.list();
  ::agent::JobAssignmentResponse order;
  order.add_gpu_indexes(1);
  const GivenDevices given = given_devices(order, source, gpus).value();
  EXPECT_EQ(given.names, std::vector<std::string>{gpus.entries[1].gpu.uuid});
  EXPECT_EQ(given.uuids, given.names);
  ::agent::JobAssignmentResponse by_uuid;
  by_uuid.add_gpu_ids(gpus.entries[0].gpu.uuid);
  EXPECT_EQ(given_devices(by_uuid, source, gpus).value().names[0], gpus.entries[0].gpu.uuid);
  by_uuid.add_gpu_ids("GPU-gone");
  EXPECT_FALSE(given_devices(by_uuid, source, gpus).ok());
}

TEST(Order, names_mig_instances_by_theirs) {
  PretendRealGpus source;
  ::agent::JobAssignmentResponse order;
  order.add_gpu_indexes(0);
  ::agent::MigSlice& slice = *order.add_mig();
  slice.set_profile("1g.18gb");
  slice.set_start(2);
  EXPECT_EQ(given_devices(order, source, source.list()).value().names,
            std::vector<std::string>{"MIG-2"});
  slice.set_start(5);
  EXPECT_FALSE(given_devices(order, source, source.list()).ok());
  slice.set_create(true);
  EXPECT_TRUE(given_devices(order, source, source.list()).ok());
}

TEST(Order, a_job_without_gpus_sees_none) {
  const auto environment = task_environment({}, {}, "n1");
  EXPECT_EQ(environment.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(environment.at("NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_FALSE(environment.contains("RANK"));
}

TEST(Order, a_part_of_a_gpu_is_told_to_the_sharing_service) {
  ::agent::JobAssignmentResponse order;
  order.add_gpu_indexes(0);
  order.set_gpu_milli(250);
  order.set_gpu_memory_mb(20'000);
  const auto environment = task_environment(order, {{"GPU-x"}, {}, {}}, "n1");
  EXPECT_EQ(environment.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "25");
  EXPECT_EQ(environment.at("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=20000M");
}

TEST(Order, an_image_without_a_runtime_is_noted) {
  ::agent::JobAssignmentResponse order;
  order.set_image("torch:1");
  order.add_command("python");
  order.add_args("train.py");
  order.set_cpu_cores(4);
  Options options;
  const TaskOrder task = task_order(order, {}, options, "/lease");
  EXPECT_EQ(task.command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(task.cpu_milli, 4000);
  EXPECT_NE(task.note.find("torch:1"), std::string::npos);
  options.container_runtime = "podman";
  EXPECT_TRUE(task_order(order, {}, options, "/lease").note.empty());
}

}  // namespace
}  // namespace gs::agent
