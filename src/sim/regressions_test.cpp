// Stories that random faults have found, each told by hand: what went wrong once must not come
// back.
#include <gtest/gtest.h>

#include "model/sample_test.hpp"
#include "sim/describe.hpp"
#include "sim/world.hpp"

namespace gs {
namespace {

class Regressions : public testing::Test {
 protected:
  Regressions() : world(WorldOptions{{}, seconds(5), {}, 1000, true}) {
    Tenant tenant;
    tenant.id = "t";
    send(PutTenant{tenant});
  }

  void send(const Command& command) {
    const Result<Effects> answer = world.send(command);
    EXPECT_TRUE(answer.ok()) << describe(command) << ": "
                             << (answer.ok() ? "" : answer.error().message);
    EXPECT_TRUE(world.settle());
    world.engine().verify();
  }
  void wait(Duration d) {
    EXPECT_TRUE(world.advance_to(world.now() + d));
    world.engine().verify();
    EXPECT_TRUE(world.surprises().empty()) << world.surprises().front();
  }
  void add_node(const std::string& name, int gpus, std::int64_t cpu_milli = 64'000) {
    Node node = sample_node(name, gpus);
    node.capacity.cpu_milli = cpu_milli;
    for (Gpu& gpu : node.gpus) {
      gpu.island = "i";
      gpu.bandwidth_gbps = 900;
      gpu.temperature_c = 40;
    }
    send(PutNode{node});
  }
  static Job job(const std::string& id, int tasks, int gpus, int priority = 500) {
    Job job;
    job.id = id;
    job.tenant = "t";
    job.priority = priority;
    Group group;
    group.count = tasks;
    group.request.gpu.count = gpus;
    job.groups = {group};
    return job;
  }
  void submit(const Job& job, Duration runs) {
    world.set_duration(job.id, runs);
    send(SubmitJob{job});
  }
  std::string state(const std::string& job) {
    const auto explanation = world.engine().explain(job, world.now());
    return explanation ? explanation->state : "gone";
  }
  int running(const std::string& job) const {
    int tasks = 0;
    for (const auto& [key, live] : world.tasks())
      tasks += key.first == job && live.state == LiveTask::State::Running ? 1 : 0;
    return tasks;
  }
  // How often the engine said that, in all.
  int said(const std::string& words) const {
    int count = 0;
    for (const LogEntry& entry : world.log())
      for (const Effect& effect : entry.effects)
        count += describe(effect).find(words) != std::string::npos ? 1 : 0;
    return count;
  }

  World world;
};

TEST_F(Regressions, cpu_of_a_task_that_still_stops_is_not_free) {
  add_node("n", 4, 8'000);
  Job first = job("first", 1, 1);
  first.groups[0].request.resources.cpu_milli = 6'000;
  submit(first, hours(1));
  Job next = job("next", 1, 1);
  next.groups[0].request.resources.cpu_milli = 4'000;
  next.groups[0].topology.required_level = "node";
  submit(next, hours(1));
  send(CancelJob{"first"});
  wait(seconds(4));
  EXPECT_EQ(running("next"), 0);
  wait(seconds(2));
  EXPECT_EQ(running("next"), 1);
}

TEST_F(Regressions, drained_members_of_a_gang_find_a_place_or_take_the_rest_along) {
  add_node("a", 2);
  add_node("b", 2);
  submit(job("gang", 4, 1), hours(1));
  ASSERT_EQ(running("gang"), 4);
  send(CordonNode{"a", true, true});
  wait(seconds(1));
  EXPECT_EQ(running("gang"), 0) << "no room for the others: none runs on";
  send(CordonNode{"a", false, false});
  wait(seconds(10));
  EXPECT_EQ(running("gang"), 4);
}

TEST_F(Regressions, a_drained_member_moves_when_there_is_room) {
  add_node("a", 2);
  add_node("b", 2);
  submit(job("gang", 2, 1), hours(1));
  const std::string from = world.tasks().begin()->second.place.node;
  send(CordonNode{from, true, true});
  wait(seconds(10));
  EXPECT_EQ(running("gang"), 2);
  for (const auto& [key, live] : world.tasks()) EXPECT_NE(live.place.node, from);
}

TEST_F(Regressions, what_is_left_of_a_gang_starts_again_without_those_that_have_succeeded) {
  add_node("n", 4);
  submit(job("gang", 3, 1), hours(1));
  send(TaskEnded{{"gang", 0, 1}, Outcome::Succeeded});
  submit(job("urgent", 1, 4, 2000), minutes(1));
  wait(seconds(10));
  EXPECT_EQ(running("urgent"), 1);
  wait(minutes(2));
  EXPECT_EQ(running("gang"), 2);
  wait(hours(2));
  EXPECT_EQ(state("gang"), "gone");
}

TEST_F(Regressions, nobody_is_started_and_stopped_in_one_breath) {
  Tenant tenant;
  tenant.id = "t";
  tenant.limit.running_jobs = 2;
  send(PutTenant{tenant});
  add_node("n", 3);
  submit(job("keeper", 1, 1, 1900), hours(1));
  submit(job("low", 1, 1, 500), hours(1));
  submit(job("middle", 1, 1, 1600), hours(1));  // takes the place of `low`
  submit(job("high", 1, 1, 2000), hours(1));    // and this one that of `middle`
  wait(minutes(1));
  EXPECT_EQ(running("high"), 1);
  EXPECT_EQ(running("keeper"), 1);
  EXPECT_EQ(said("start middle"), 0);
  EXPECT_EQ(state("middle"), "waiting");
}

TEST_F(Regressions, a_reserved_start_less_than_a_minute_away_is_kept) {
  world.options().stop_delay = {};
  Config config;
  config.preemption = false;
  send(SetConfig{config});
  add_node("n", 4);
  Job half = job("half", 1, 2);
  half.expected_runtime = seconds(50);
  submit(half, seconds(50));
  Job quarter = job("quarter", 1, 1);
  quarter.expected_runtime = seconds(54);
  submit(quarter, seconds(54));
  Job big = job("big", 1, 4, 900);
  big.expected_runtime = seconds(30);
  submit(big, seconds(30));
  Job filler = job("filler", 1, 2);
  filler.expected_runtime = seconds(30);
  submit(filler, seconds(30));
  wait(seconds(55));
  EXPECT_EQ(running("big"), 1) << "from 54 s on; the filler would have taken its room at 50 s";
}

TEST_F(Regressions, a_promised_gpu_that_got_hot_is_not_started_on) {
  add_node("n", 2);
  submit(job("first", 1, 2), hours(1));
  submit(job("next", 1, 1, 900), hours(1));
  ASSERT_EQ(said("nominate next"), 1);
  for (const int gpu : {0, 1}) send(ReportGpu{"n", gpu, Health::Healthy, 90});
  wait(seconds(10));
  EXPECT_EQ(running("next"), 0);
  for (const int gpu : {0, 1}) send(ReportGpu{"n", gpu, Health::Healthy, 60});
  wait(seconds(1));
  EXPECT_EQ(running("next"), 1);
}

TEST_F(Regressions, a_pinned_task_waits_until_the_device_is_left) {
  add_node("n", 2);
  submit(job("first", 1, 2), hours(1));
  Job pinned = job("pinned", 2, 1, 900);
  pinned.groups[0].request.only_nodes = {"n"};
  pinned.groups[0].request.gpu.pinned_ids = {1};
  submit(pinned, hours(1));
  ASSERT_EQ(said("nominate pinned"), 1);
  wait(seconds(4));
  EXPECT_EQ(said("start pinned"), 0);
  wait(seconds(2));
  EXPECT_EQ(running("pinned"), 2);
}

TEST_F(Regressions, a_moved_task_does_not_run_twice) {
  Config config;
  config.consolidation = true;
  send(SetConfig{config});
  add_node("a", 2);
  add_node("b", 2);
  Job first = job("first", 1, 1);
  first.movable = true;
  submit(first, hours(1));
  Job second = job("second", 1, 1);
  second.movable = true;
  second.groups[0].request.strategy = Strategy::Distributed;
  submit(second, hours(1));
  submit(job("big", 1, 2), hours(1));
  wait(minutes(1));  // wait() looks for surprises
  EXPECT_EQ(running("first") + running("second"), 2);
  EXPECT_EQ(running("big"), 1);
}

// Shares move with demand and use; two tenants must not take each other's room for ever because of
// it.
TEST_F(Regressions, two_tenants_come_to_rest) {
  Tenant small;
  small.id = "small";
  small.guaranteed.gpu_milli = 5 * kWholeGpu;
  send(PutTenant{small});
  Tenant large;
  large.id = "large";
  large.guaranteed.gpu_milli = 9 * kWholeGpu;
  large.over_quota_weight = 3;
  send(PutTenant{large});
  add_node("a", 8);
  add_node("b", 8);
  world.options().stop_delay = {};
  Job wide = job("wide", 6, 2);
  wide.tenant = "large";
  Job other = job("other", 1, 4);
  other.tenant = "small";
  submit(wide, hours(10));
  submit(other, hours(10));
  for (int i = 0; i < 6; ++i) {
    Job little = job("little" + std::to_string(i), 1, 1);
    little.tenant = "small";
    submit(little, hours(10));
  }
  wait(hours(1));
  EXPECT_LE(said("stop wide") + said("stop other"), 2);
}

TEST_F(Regressions, a_member_that_succeeds_while_it_moves_does_not_start_again) {
  add_node("a", 4);
  submit(job("gang", 2, 1), hours(1));
  add_node("b", 4);
  send(CordonNode{"a", true, true});  // both are promised a place on b
  send(TaskEnded{{"gang", 0, 0}, Outcome::Succeeded});
  wait(seconds(10));
  EXPECT_EQ(running("gang"), 1);
  EXPECT_EQ(said("start gang on gang/0=b"), 0) << "promised, and never started";
}

TEST_F(Regressions, a_snapshot_carries_plans_and_why_a_job_waits) {
  add_node("a", 2);
  Job first = job("first", 1, 2);
  first.expected_runtime = hours(1);
  submit(first, hours(1));
  submit(job("next", 1, 2), hours(1));
  const auto before = world.engine().explain("next", world.now());
  const auto restored = Engine::restore(world.engine().snapshot());
  const auto after = restored->explain("next", world.now());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->why->sentence, after->why->sentence);
  EXPECT_EQ(before->expected_start, after->expected_start);
  EXPECT_TRUE(after->expected_start.has_value());
}

}  // namespace
}  // namespace gs
