// The agent as a user starts it, against a scheduler that the test plays.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/fake_scheduler_test.hpp"
#include "agent/files.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {
namespace {

TEST_F(AgentTest, registers_with_what_the_machine_has) {
  start_agent({"--label", "zone=a", "--domain", "spine-1/leaf-3", "--token", "secret", "--taint",
               "gpu=only:NoSchedule", "--address", "10.1.2.3"});
  const auto request = scheduler_->registration(0);
  EXPECT_EQ(request.node_id(), "node-1");
  EXPECT_EQ(request.ip_address(), "10.1.2.3");
  EXPECT_EQ(request.total_gpus(), 4);
  EXPECT_TRUE(request.simulated());
  ASSERT_EQ(request.gpus_size(), 4);
  EXPECT_EQ(request.gpus(2).index(), 2);
  EXPECT_EQ(request.gpus(2).model(), "H100-SXM5-80GB");
  EXPECT_EQ(request.gpus(2).health(), "healthy");
  EXPECT_EQ(request.labels().at("zone"), "a");
  ASSERT_EQ(request.domain_size(), 2);
  EXPECT_EQ(request.domain(1), "leaf-3");
  ASSERT_EQ(request.taints_size(), 1);
  EXPECT_EQ(request.taints(0).effect(), "NoSchedule");
  EXPECT_GT(request.total_cpu_cores(), 0);
  EXPECT_GT(request.total_memory_mb(), 0);
  EXPECT_EQ(scheduler_->authorization(), "Bearer secret");
}

TEST_F(AgentTest, reports_the_exit_code_and_forgets_when_told) {
  start_agent();
  // It waits for us: of a task that has ended meanwhile only the end is reported.
  scheduler_->send(
      script("a", "echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; exit 7"));
  const auto running = scheduler_->report_of(id("a"), "running");
  EXPECT_GT(running.pid(), 1);
  EXPECT_EQ(running.job_id(), "job-a");
  ASSERT_TRUE(replace_file(task_dir("a") + "/scratch/go", "", Durability::Later).ok());
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.exit_code(), 7);
  EXPECT_EQ(report.signal(), 0);
  EXPECT_FALSE(report.stopped() || report.timed_out() || report.lease_lost());
  EXPECT_GE(report.finished_at().seconds(), report.started_at().seconds());
  read_log("a", "log", false);
  EXPECT_EQ(scheduler_->log_text("log", true, ""), "out\nerr\n");

  ::agent::JobAssignmentResponse order;
  order.set_order(::agent::FORGET);
  order.set_allocation_id(id("a"));
  scheduler_->send(order);
  EXPECT_TRUE(eventually([&] { return !file_exists(task_dir("a")); }));
  read_log("a", "later", false);
  EXPECT_EQ(scheduler_->log_text("later", true, ""), "out\nerr\n") << "output is kept for a while";
}

TEST_F(AgentTest, reports_the_signal_that_ended_a_task) {
  start_agent();
  scheduler_->send(script("a", "kill -SEGV $$"));
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.signal(), SIGSEGV);
  EXPECT_EQ(report.exit_code(), 0);
}

TEST_F(AgentTest, ends_a_task_whose_time_is_over) {
  start_agent();
  auto order = script("a", "sleep 300");
  order.set_max_runtime_ms(200);
  scheduler_->send(order);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_TRUE(report.timed_out());
  EXPECT_FALSE(report.stopped());
  EXPECT_EQ(report.signal(), SIGTERM);
}

TEST_F(AgentTest, kills_a_task_that_does_not_listen) {
  start_agent();
  scheduler_->send(script("a", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"));
  read_log("a", "log", true);
  scheduler_->log_text("log", false, "deaf");
  send_stop("a", 300);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_TRUE(report.stopped());
  EXPECT_EQ(report.signal(), SIGKILL);
}

TEST_F(AgentTest, a_task_may_save_its_work_when_stopped) {
  start_agent();
  scheduler_->send(
      script("a", "trap 'echo saved; exit 3' TERM; echo up; while :; do sleep 0.05; done"));
  read_log("a", "log", true);
  scheduler_->log_text("log", false, "up");
  send_stop("a", 20'000);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_TRUE(report.stopped());
  EXPECT_EQ(report.exit_code(), 3);
  EXPECT_TRUE(scheduler_->log_text("log", true, "").ends_with("saved\n"));
}

TEST_F(AgentTest, leaves_no_process_of_a_task_behind) {
  start_agent();
  scheduler_->send(script("a", "setsid sleep 301 & echo $!; sleep 302 & echo $!; exit 0"));
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.exit_code(), 0);
  read_log("a", "log", false);
  std::istringstream pids(scheduler_->log_text("log", true, ""));
  int count = 0;
  for (int pid = 0; pids >> pid; ++count) EXPECT_FALSE(process_exists(pid)) << pid;
  EXPECT_EQ(count, 2);
}

TEST_F(AgentTest, gives_a_task_its_devices_and_its_place_in_a_gang) {
  start_agent();
  auto order = script("a", "env | sort");
  order.add_gpu_indexes(1);
  order.add_gpu_indexes(3);
  order.set_rank(1);
  order.set_world_size(2);
  order.set_master_addr("10.0.0.7");
  order.set_master_port(29500);
  order.set_attempt(2);
  order.set_checkpoint_path("/data/ckpt");
  (*order.mutable_environment())["GREETING"] = "hello";
  (*order.mutable_environment())["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";
  scheduler_->send(order);
  scheduler_->report_of(id("a"), "exited");
  read_log("a", "log", false);
  const std::string text = "\n" + scheduler_->log_text("log", true, "");
  for (const char* line :
       {"CUDA_VISIBLE_DEVICES=1,3", "NVIDIA_VISIBLE_DEVICES=1,3", "RANK=1", "NODE_RANK=1",
        "WORLD_SIZE=2", "NNODES=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=10.0.0.7",
        "MASTER_PORT=29500", "GPU_SCHEDULER_JOB_ID=job-a", "GPU_SCHEDULER_TENANT_ID=team",
        "GPU_SCHEDULER_ATTEMPT=2", "GPU_SCHEDULER_CHECKPOINT_PATH=/data/ckpt", "GREETING=hello"})
    EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line << text;
}

TEST_F(AgentTest, runs_a_script_by_the_interpreter_it_names) {
  start_agent();
  auto order = script("a", "#!/bin/cat\nshown as it is\n");
  scheduler_->send(order);
  EXPECT_EQ(scheduler_->report_of(id("a"), "exited").exit_code(), 0);
  read_log("a", "log", false);
  EXPECT_EQ(scheduler_->log_text("log", true, ""), "#!/bin/cat\nshown as it is\n");
}

TEST_F(AgentTest, refuses_what_cannot_be_started_and_says_why) {
  start_agent();
  auto order = script("command", "");
  order.add_command("/no/such/program");
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("command"), "refused").message().find("/no/such/program"),
            std::string::npos);
  order = script("user", "true");
  order.set_user("no-such-user");
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("user"), "refused").message().find("no-such-user"),
            std::string::npos);
  order = script("folder", "true");
  order.set_working_dir("/no/such/folder");
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("folder"), "refused").message().find("/no/such/folder"),
            std::string::npos);
  order = script("gpu", "true");
  order.add_gpu_indexes(17);
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("gpu"), "refused").message().find("no GPU 17"),
            std::string::npos);
  if (::geteuid() != 0) return;
  order = script("root", "true");
  order.set_user("root");
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("root"), "refused").message().find("root"), std::string::npos);
}

TEST_F(AgentTest, does_not_run_tasks_as_root) {
  if (::geteuid() != 0) GTEST_SKIP() << "the agent is not root";
  start_agent();
  scheduler_->send(script("a", "id -un; touch here && echo wrote"));
  scheduler_->report_of(id("a"), "exited");
  read_log("a", "log", false);
  EXPECT_EQ(scheduler_->log_text("log", true, ""), "nobody\nwrote\n");
}

TEST_F(AgentTest, ends_a_task_that_needs_too_much_memory) {
  start_agent();
  auto order = script("a", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}");
  order.set_memory_mb(50);
  scheduler_->send(order);
  const auto report = scheduler_->report_of(id("a"), "exited");
  if (report.message().find("cgroup") != std::string::npos) GTEST_SKIP() << report.message();
  EXPECT_TRUE(report.out_of_memory()) << report.ShortDebugString();
}

TEST_F(AgentTest, an_order_given_twice_is_done_once) {
  start_agent();
  const auto order = script("a", "echo started; sleep 300");
  scheduler_->send(order);
  const auto first = scheduler_->report_of(id("a"), "running");
  const int before = scheduler_->reports_of(id("a"));
  scheduler_->send(order);
  EXPECT_TRUE(eventually([&] { return scheduler_->reports_of(id("a")) > before; }));
  EXPECT_TRUE(process_exists(first.pid()));
  read_log("a", "log", true);
  scheduler_->log_text("log", false, "started");
  send_stop("a", 100);
  EXPECT_EQ(scheduler_->report_of(id("a"), "exited").pid(), first.pid());
  EXPECT_EQ(scheduler_->log_text("log", true, "").find("started", 1), std::string::npos);
}

TEST_F(AgentTest, says_of_an_unknown_task_that_it_is_stopped) {
  start_agent();
  send_stop("never-started", 100);
  const auto report = scheduler_->report_of(id("never-started"), "exited");
  EXPECT_TRUE(report.stopped());
  EXPECT_NE(report.message().find("no such task"), std::string::npos);
}

TEST_F(AgentTest, tells_of_an_image_that_it_cannot_run) {
  start_agent();
  auto order = script("a", "true");
  order.set_image("pytorch:2.3");
  scheduler_->send(order);
  EXPECT_NE(scheduler_->report_of(id("a"), "exited").message().find("pytorch:2.3"),
            std::string::npos);
}

TEST_F(AgentTest, keeps_the_end_of_a_long_log) {
  start_agent({"--log-bytes", "100000", "--log-files", "2"});
  scheduler_->send(script("a", "seq 1 100000"));
  scheduler_->report_of(id("a"), "exited");
  read_log("a", "all", false);
  const std::string text = scheduler_->log_text("all", true, "");
  EXPECT_LE(text.size(), 200'000U);
  EXPECT_GE(text.size(), 100'000U);
  EXPECT_TRUE(text.ends_with("\n99999\n100000\n"));
  EXPECT_LE(scheduler_->largest_chunk(), 64U * 1024);
  read_log("a", "tail", false, 3);
  EXPECT_EQ(scheduler_->log_text("tail", true, ""), "99998\n99999\n100000\n");
}

TEST_F(AgentTest, follows_a_log_until_the_end_or_until_told_not_to) {
  start_agent();
  scheduler_->send(script("a", "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"));
  read_log("a", "follow", true);
  read_log("a", "cancelled", true);
  scheduler_->log_text("follow", false, "one");
  scheduler_->log_text("cancelled", false, "one");
  ::agent::JobAssignmentResponse order;
  order.set_order(::agent::READ_LOG);
  order.set_allocation_id(id("a"));
  order.mutable_log_request()->set_request_id("cancelled");
  order.mutable_log_request()->set_cancel(true);
  scheduler_->send(order);
  scheduler_->log_text("cancelled", true, "one");
  std::ofstream go(task_dir("a") + "/scratch/go");
  EXPECT_EQ(scheduler_->log_text("follow", true, ""), "one\ntwo\n");
  EXPECT_EQ(scheduler_->log_text("cancelled", true, ""), "one\n");
  read_log("nobody", "unknown", false);
  EXPECT_NE(scheduler_->log_text("unknown", true, "").find("no log"), std::string::npos);
}

TEST_F(AgentTest, tells_at_once_that_a_gpu_broke) {
  const std::string file = directory_.path() + "/gpus.json";
  start_agent({"--simulate-file", file});
  scheduler_->registration(0);
  ASSERT_TRUE(replace_file(file,
                           R"({"gpus": {"2": {"health": "unhealthy", "temperature_c": 97,
                               "last_error": "XID 79"}}})",
                           Durability::Later)
                  .ok());
  const auto beat = scheduler_->heartbeat([](const ::agent::HeartbeatRequest& request) {
    return request.gpu_metrics_size() == 4 && request.gpu_metrics(2).health() == "unhealthy";
  });
  EXPECT_EQ(beat.gpu_metrics(2).last_error(), "XID 79");
  EXPECT_EQ(beat.gpu_metrics(2).temperature(), 97);
  EXPECT_EQ(beat.gpu_metrics(1).health(), "healthy");
}

TEST_F(AgentTest, measures_tasks_and_gpus) {
  start_agent({"--metrics-ms", "100"});
  scheduler_->send(script("a", "while :; do :; done"));
  scheduler_->report_of(id("a"), "running");
  const auto metrics = scheduler_->metrics([](const ::agent::ReportMetricsRequest& request) {
    return request.job_metrics_size() == 1 && request.job_metrics(0).cpu_utilization() > 0;
  });
  EXPECT_EQ(metrics.gpu_metrics_size(), 4);
  EXPECT_EQ(metrics.job_metrics(0).allocation_id(), id("a"));
}

// Prints how long a start takes; no assertion on that, machines are noisy.
TEST_F(AgentTest, starts_many_tasks_one_after_the_other) {
  constexpr std::size_t kTasks = 40;
  start_agent();
  scheduler_->registration(0);
  std::vector<double> took_ms;
  for (std::size_t i = 0; i < kTasks; ++i) {
    const std::string name = std::to_string(i);
    auto order = script(name, "");
    order.add_command("/bin/sleep");
    order.add_args("300");
    order.set_memory_mb(100);
    order.set_cpu_cores(1);
    order.add_gpu_indexes(0);
    const auto begin = std::chrono::steady_clock::now();
    scheduler_->send(order);
    scheduler_->report_of(id(name), "running");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    took_ms.push_back(took.count());
    send_stop(name, 20'000);
    EXPECT_TRUE(scheduler_->report_of(id(name), "exited").stopped()) << name;
  }
  ASSERT_EQ(took_ms.size(), kTasks);
  std::sort(took_ms.begin(), took_ms.end());
  std::printf("START to \"running\": median %.2f ms, 90%% %.2f ms, worst %.2f ms\n",
              took_ms[kTasks / 2], took_ms[kTasks * 9 / 10], took_ms.back());
}

}  // namespace
}  // namespace gs::agent
