// Tasks in containers, with the podman of the machine where there is one that works.
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "agent/container.hpp"
#include "agent/fake_scheduler_test.hpp"
#include "agent/files.hpp"
#include "agent/launch.hpp"

namespace gs::agent {
namespace {

constexpr const char* kImage = "localhost/gpu-scheduler-agent-test:1";
constexpr const char* kArguments =
    "--runtime runc --ulimit nofile=1024:1024 --ulimit nproc=1024:1024";

class ContainerTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!file_exists("/usr/bin/podman") || !file_exists("/bin/busybox"))
      GTEST_SKIP() << "needs podman and a static busybox";
    const std::string root = directory_.path() + "/image";
    std::filesystem::create_directories(root + "/bin");
    std::filesystem::copy_file("/bin/busybox", root + "/bin/busybox");
    for (const char* applet : {"sh", "echo", "sleep", "id", "cat"})
      std::filesystem::create_symlink("busybox", root + "/bin/" + applet);
    run_and_wait({"tar", "-C", root, "-cf", root + ".tar", "."});
    run_and_wait({"podman", "import", root + ".tar", kImage});
    if (run_and_wait({"podman", "run", "--rm", "--network=host", "--runtime", "runc", "--ulimit",
                      "nofile=1024:1024", "--ulimit", "nproc=1024:1024", kImage, "/bin/echo"}) != 0)
      GTEST_SKIP() << "podman cannot run a container here";
    start_agent({"--container-runtime", "podman", "--container-args", kArguments});
  }
  void TearDown() override {
    AgentTest::TearDown();
    if (file_exists("/usr/bin/podman")) run_and_wait({"podman", "rmi", "--force", kImage});
  }
};

bool container_exists(const std::string& name) {
  return run_and_wait({"podman", "container", "exists", name}) == 0;
}

TEST_F(ContainerTest, a_task_runs_inside_its_image) {
  auto order = script("a", "echo rank $RANK of $WORLD_SIZE; ls / 2>&1; id -u; exit 9");
  order.set_image(kImage);
  order.set_rank(1);
  order.set_world_size(2);
  order.set_memory_mb(100);
  order.set_cpu_cores(1);
  scheduler_->send(order);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.exit_code(), 9) << report.message();
  read_log("a", "log", false);
  const std::string text = scheduler_->log_text("log", true, "");
  EXPECT_NE(text.find("rank 1 of 2\n"), std::string::npos) << text;
  if (::geteuid() == 0) {
    EXPECT_NE(text.find("65534\n"), std::string::npos) << text;
  }
}

TEST_F(ContainerTest, a_container_is_gone_when_its_task_is_stopped) {
  auto order = script("a", "trap '' TERM; echo up; while :; do sleep 1; done");
  order.set_image(kImage);
  scheduler_->send(order);
  read_log("a", "log", true);
  scheduler_->log_text("log", false, "up");
  send_stop("a", 200);
  EXPECT_TRUE(scheduler_->report_of(id("a"), "exited").stopped());
  EXPECT_FALSE(container_exists("gs-" + file_name_for(id("a"))));
}

TEST_F(ContainerTest, an_image_that_is_not_there_ends_the_task_with_a_reason) {
  auto order = script("a", "true");
  order.set_image("localhost/no-such-image:0");
  scheduler_->send(order);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.exit_code(), 125);
  EXPECT_NE(report.message().find("podman"), std::string::npos);
}

TEST(Container, passes_devices_as_the_runtime_wants_them) {
  TaskOrder order;
  order.allocation_id = "job/1";
  order.image = "image:1";
  order.devices = {"GPU-a", "GPU-b"};
  order.cpu_milli = 1500;
  order.memory_mb = 64;
  order.environment = {{"A", "1"}, {"B", "two\nlines"}};
  order.container_runtime = "podman";
  const auto text = [&] {
    std::string all;
    for (const std::string& part : container_command(order, {}, {"run", "me"}, "", "/env"))
      all += part + "|";
    return all;
  };
  EXPECT_EQ(text(),
            "podman|run|--rm|--name|gs-job_2f1|--network=host|--env-file|/env|--env|B=two\nlines|"
            "--cpus=1.500|--memory=64m|--device|nvidia.com/gpu=GPU-a|--device|"
            "nvidia.com/gpu=GPU-b|image:1|run|me|");
  EXPECT_EQ(env_file_content(order), "A=1\n");
  order.container_runtime = "docker";
  EXPECT_NE(text().find("|--gpus|\"device=GPU-a,GPU-b\"|"), std::string::npos);
}

}  // namespace
}  // namespace gs::agent
