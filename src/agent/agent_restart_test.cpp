// What happens to tasks when the agent, their supervisor or the scheduler goes away.
#include <algorithm>
#include <filesystem>

#include <signal.h>

#include "agent/fake_scheduler_test.hpp"
#include "agent/files.hpp"
#include "agent/processes.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {
namespace {

const ::agent::TaskReport* find(const ::agent::RegisterAgentRequest& request,
                                const std::string& id) {
  for (const ::agent::TaskReport& task : request.tasks())
    if (task.allocation_id() == id) return &task;
  return nullptr;
}

bool anything_marked(const std::string& allocation_id) {
  const std::string marker = std::string(kMarker) + "=" + allocation_id;
  for (const Process& process : all_processes()) {
    const auto environment = read_file("/proc/" + std::to_string(process.pid) + "/environ");
    if (environment && environment->find(marker) != std::string::npos) return true;
  }
  return false;
}

TEST_F(AgentTest, finds_its_tasks_again_after_it_was_killed) {
  start_agent();
  auto runs = script("runs", "sleep 300");
  runs.add_gpu_indexes(2);
  scheduler_->send(runs);
  scheduler_->send(script("ends", "while [ ! -e go ]; do sleep 0.02; done; exit 5"));
  const auto running = scheduler_->report_of(id("runs"), "running");
  scheduler_->report_of(id("ends"), "running");
  agent_.kill_hard();
  EXPECT_TRUE(process_exists(running.pid()));
  ASSERT_TRUE(replace_file(task_dir("ends") + "/scratch/go", "", Durability::Later).ok());
  ASSERT_TRUE(eventually([&] { return read_status(task_dir("ends")).ended(); }));

  start_agent();
  const auto again = scheduler_->registration(1);
  const auto* still = find(again, id("runs"));
  const auto* ended = find(again, id("ends"));
  ASSERT_TRUE(still != nullptr && ended != nullptr);
  EXPECT_EQ(still->state(), "running");
  EXPECT_EQ(still->pid(), running.pid());
  ASSERT_EQ(still->gpu_indexes_size(), 1);
  EXPECT_EQ(still->gpu_indexes(0), 2);
  EXPECT_EQ(again.instance_id(), scheduler_->registration(0).instance_id());
  EXPECT_FALSE(again.instance_id().empty());
  EXPECT_EQ(ended->state(), "exited");
  EXPECT_EQ(ended->exit_code(), 5);
  EXPECT_GT(ended->ended_ms_ago(), 0);
  send_stop("runs", 100);  // and it is still ours to stop
  EXPECT_TRUE(scheduler_->report_of(id("runs"), "exited").stopped());
}

TEST_F(AgentTest, tasks_go_on_when_the_agent_leaves) {
  start_agent();
  scheduler_->send(script("a", "sleep 300"));
  const auto running = scheduler_->report_of(id("a"), "running");
  EXPECT_EQ(agent_.terminate(), 0);
  EXPECT_TRUE(process_exists(running.pid()));
}

TEST_F(AgentTest, stops_its_tasks_on_exit_if_that_was_asked_for) {
  start_agent({"--stop-tasks-on-exit"});
  scheduler_->send(script("a", "sleep 300"));
  const auto running = scheduler_->report_of(id("a"), "running");
  EXPECT_EQ(agent_.terminate(), 0);
  EXPECT_FALSE(process_exists(running.pid()));
  EXPECT_TRUE(read_status(task_dir("a")).stopped);
}

TEST_F(AgentTest, no_task_outlives_its_supervisor) {
  start_agent();
  scheduler_->send(script("a", "setsid sleep 303 & sleep 304 & sleep 305"));
  const auto running = scheduler_->report_of(id("a"), "running");
  const std::int64_t supervisor = read_status(task_dir("a")).supervisor_pid;
  ASSERT_GT(supervisor, 1);
  ASSERT_EQ(::kill(static_cast<pid_t>(supervisor), SIGKILL), 0);
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_EQ(report.signal(), SIGKILL);
  EXPECT_NE(report.message().find("supervisor"), std::string::npos);
  EXPECT_FALSE(process_exists(running.pid()));
  EXPECT_FALSE(anything_marked(id("a")));
}

TEST_F(AgentTest, cleans_up_after_a_supervisor_that_died_while_it_was_away) {
  start_agent();
  scheduler_->send(script("a", "setsid sleep 306 & sleep 307"));
  scheduler_->report_of(id("a"), "running");
  const std::int64_t supervisor = read_status(task_dir("a")).supervisor_pid;
  ASSERT_GT(supervisor, 1);
  agent_.kill_hard();
  ASSERT_EQ(::kill(static_cast<pid_t>(supervisor), SIGKILL), 0);
  start_agent();
  EXPECT_EQ(scheduler_->report_of(id("a"), "exited").signal(), SIGKILL);
  EXPECT_FALSE(anything_marked(id("a")));
}

TEST_F(AgentTest, a_supervisor_whose_folder_is_gone_ends_with_its_task) {
  start_agent();
  scheduler_->send(script("a", "while [ ! -e go ]; do sleep 0.02; done"));
  scheduler_->report_of(id("a"), "running");
  const auto supervisor = static_cast<pid_t>(read_status(task_dir("a")).supervisor_pid);
  ASSERT_GT(supervisor, 1);
  agent_.kill_hard();
  std::filesystem::remove_all(task_dir("a"));
  ASSERT_EQ(::kill(supervisor, SIGTERM), 0);
  EXPECT_TRUE(eventually([&] { return !process_exists(supervisor); }));
}

class ShortLease : public AgentTest {
 protected:
  ShortLease() { lease_ms_ = 1000; }
};

TEST_F(ShortLease, tasks_stop_by_themselves_when_the_agent_is_dead) {
  start_agent();
  scheduler_->send(script("a", "sleep 300"));
  const auto running = scheduler_->report_of(id("a"), "running");
  agent_.kill_hard();
  EXPECT_TRUE(eventually([&] { return read_status(task_dir("a")).ended(); }));
  EXPECT_TRUE(read_status(task_dir("a")).lease_lost);
  EXPECT_FALSE(process_exists(running.pid()));
  start_agent();
  EXPECT_TRUE(scheduler_->report_of(id("a"), "exited").lease_lost());
}

TEST_F(ShortLease, tasks_stop_when_the_scheduler_no_longer_answers) {
  start_agent();
  scheduler_->send(script("a", "sleep 300"));
  scheduler_->report_of(id("a"), "running");
  scheduler_->acknowledge(false);
  EXPECT_TRUE(scheduler_->report_of(id("a"), "exited").lease_lost());
}

TEST_F(ShortLease, tasks_run_on_as_long_as_heartbeats_are_answered) {
  start_agent();
  scheduler_->send(script("a", "sleep 3; echo through"));
  const auto report = scheduler_->report_of(id("a"), "exited");
  EXPECT_FALSE(report.lease_lost());
  EXPECT_EQ(report.exit_code(), 0);
}

TEST_F(AgentTest, registers_anew_after_the_scheduler_was_restarted) {
  start_agent();
  scheduler_->send(script("a", "sleep 300"));
  scheduler_->report_of(id("a"), "running");
  scheduler_->stop();
  scheduler_->start();
  const auto again = scheduler_->registration(1);
  ASSERT_NE(find(again, id("a")), nullptr);
  EXPECT_EQ(find(again, id("a"))->state(), "running");
  scheduler_->send(script("b", "exit 4"));
  EXPECT_EQ(scheduler_->report_of(id("b"), "exited").exit_code(), 4);
}

TEST_F(AgentTest, registers_anew_when_the_scheduler_does_not_know_it) {
  start_agent();
  scheduler_->registration(0);
  scheduler_->command("register");
  EXPECT_EQ(scheduler_->registration(1).node_id(), "node-1");
}

TEST_F(AgentTest, a_second_agent_may_not_use_the_same_state) {
  start_agent();
  scheduler_->registration(0);
  AgentProcess second;
  second.start({"--server", scheduler_->address(), "--state-dir", directory_.path() + "/state"});
  EXPECT_EQ(second.wait(), 3);
}

}  // namespace
}  // namespace gs::agent
