#include "apps/gpu_scheduler/own_name.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

using Words = std::vector<std::string>;

Words by_name(const char* program, Words arguments) {
  return arguments_by_name(program, std::move(arguments), {"serve", "kube", "agent", "sim"});
}

TEST(OwnName, its_own_name_adds_nothing) {
  EXPECT_EQ(by_name("build/release/gpu-scheduler", {"sim", "demo"}), (Words{"sim", "demo"}));
  EXPECT_EQ(by_name("gpu-scheduler", {}), Words{});
}

TEST(OwnName, scheduler_serves_unless_it_is_told_of_kubernetes) {
  EXPECT_EQ(by_name("./bin/scheduler", {}), Words{"serve"});
  EXPECT_EQ(by_name("./bin/scheduler", {"--config", "a.yaml"}),
            (Words{"serve", "--config", "a.yaml"}));
  EXPECT_EQ(by_name("./bin/scheduler",
                    {"--kubeconfig=config", "--scheduler-name=topology-aware-scheduler"}),
            (Words{"kube", "--kubeconfig=config", "--scheduler-name=topology-aware-scheduler"}));
  EXPECT_EQ(by_name("scheduler", {"--leader-elect-lease=x"}),
            (Words{"kube", "--leader-elect-lease=x"}));
  EXPECT_EQ(by_name("scheduler", {"--port", "1", "--scheduler-name", "x"}),
            (Words{"kube", "--port", "1", "--scheduler-name", "x"}));
}

TEST(OwnName, a_value_is_not_a_flag) {
  EXPECT_EQ(by_name("scheduler", {"--config", "kubeconfig"}),
            (Words{"serve", "--config", "kubeconfig"}));
}

TEST(OwnName, the_controller_stands_by_on_a_port_of_its_own) {
  EXPECT_EQ(by_name("bin/controller", {"--kubeconfig=config"}),
            (Words{"kube", "--port", "8081", "--kubeconfig=config"}));
  EXPECT_EQ(by_name("bin/controller", {"--port=0"}), (Words{"kube", "--port=0"}));
}

TEST(OwnName, agent_and_webhook_are_what_they_are_called) {
  EXPECT_EQ(by_name("bin/agent", {"--kube"}), (Words{"agent", "--kube"}));
  EXPECT_EQ(by_name("/usr/local/bin/webhook", {"--port", "1"}), (Words{"webhook", "--port", "1"}));
}

TEST(OwnName, a_subcommand_that_is_written_out_counts_more) {
  EXPECT_EQ(by_name("bin/scheduler", {"sim", "demo"}), (Words{"sim", "demo"}));
  EXPECT_EQ(by_name("bin/agent", {"serve"}), Words{"serve"});
  EXPECT_EQ(by_name("bin/scheduler", {"--version"}), Words{"--version"});
}

}  // namespace
}  // namespace gs
