#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

Node node(const std::string& name, int gpus, std::vector<std::string> domain = {}) {
  Node n;
  n.name = name;
  n.capacity = {64'000, 512LL * 1024 * kMiB, {}};
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.model = "H100";
    gpu.memory_mib = 81'920;
    gpu.island = i < 4 ? "a" : "b";
    gpu.bandwidth_gbps = 600;
    n.gpus.push_back(gpu);
  }
  n.domain = std::move(domain);
  return n;
}

Job job(const std::string& id, int gpus, int tasks = 1, int priority = 500) {
  Job j;
  j.id = id;
  j.tenant = "t";
  j.priority = priority;
  Group group;
  group.request.gpu.count = gpus;
  group.count = tasks;
  j.groups.push_back(group);
  return j;
}

class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Tenant t;
    t.id = "t";
    ok(PutTenant{t});
  }
  Effects ok(const Command& command) {
    auto result = engine.handle(command, now);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? *result : Effects{};
  }
  std::string error(const Command& command) {
    const std::uint64_t before = engine.hash();
    auto result = engine.handle(command, now);
    EXPECT_EQ(before, engine.hash()) << "a refused command must change nothing";
    return result.ok() ? "" : result.error().message;
  }
  std::vector<TaskPlace> started(const Effects& effects, const std::string& id) {
    std::vector<TaskPlace> places;
    for (const Effect& effect : effects)
      if (const auto* start = std::get_if<StartTasks>(&effect);
          start != nullptr && start->job == id)
        places.insert(places.end(), start->tasks.begin(), start->tasks.end());
    return places;
  }
  std::string state(const std::string& id) {
    const JobId found = engine.cluster().find_job(id);
    return found.valid() ? to_string(engine.cluster().job(found).state) : "gone";
  }
  void end_all(const std::string& id, Outcome outcome) {
    const JobId found = engine.cluster().find_job(id);
    ASSERT_TRUE(found.valid());
    std::vector<TaskRef> refs;
    for (const TaskId task : engine.cluster().job(found).tasks)
      if (engine.cluster().task(task).state != TaskState::Nominated)
        refs.push_back({id, engine.cluster().task(task).group, engine.cluster().task(task).rank});
    for (const TaskRef& ref : refs) ok(TaskEnded{ref, outcome});
  }

  Engine engine;
  Instant now{1000};
};

TEST_F(EngineTest, AJobRunsFromSubmissionToCompletion) {
  ok(PutNode{node("n1", 8)});
  ok(SubmitJob{job("j", 4)});
  EXPECT_EQ(state("j"), "waiting");
  const auto places = started(engine.tick(now), "j");
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].node, "n1");
  EXPECT_EQ(places[0].gpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(state("j"), "starting");
  ok(TaskStarted{{"j", 0, 0}});
  EXPECT_EQ(state("j"), "running");
  const Effects effects = ok(TaskEnded{{"j", 0, 0}, Outcome::Succeeded});
  EXPECT_EQ(state("j"), "gone");
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(std::get<JobChanged>(effects[0]).state, "completed");
  engine.verify();
}

TEST_F(EngineTest, WhatDoesNotFitWaitsAndSaysWhy) {
  ok(PutNode{node("n1", 8)});
  ok(SubmitJob{job("big", 6)});
  engine.tick(now);
  ok(SubmitJob{job("next", 4)});
  engine.tick(now);
  EXPECT_EQ(state("next"), "waiting");
  const auto why = engine.explain("next", now);
  ASSERT_TRUE(why.ok());
  ASSERT_TRUE(why->why.has_value());
  EXPECT_EQ(why->why->constraint, Constraint::Capacity);
  EXPECT_NE(why->why->sentence.find("best node n1 has 2 free GPUs"), std::string::npos)
      << why->why->sentence;
}

TEST_F(EngineTest, WhatCanNeverFitIsRefused) {
  ok(PutNode{node("n1", 8)});
  EXPECT_NE(error(SubmitJob{job("j", 9)}).find("can never run"), std::string::npos);
}

TEST_F(EngineTest, HigherPriorityPreemptsAndTheVictimComesBack) {
  ok(PutNode{node("n1", 8)});
  ok(SubmitJob{job("low", 8, 1, 100)});
  engine.tick(now);
  ok(SubmitJob{job("high", 8, 1, 2000)});
  const Effects effects = engine.tick(now);
  bool stopped = false;
  for (const Effect& effect : effects)
    if (const auto* stop = std::get_if<StopTasks>(&effect)) {
      stopped = true;
      EXPECT_EQ(stop->job, "low");
      EXPECT_EQ(stop->for_job, "high");
    }
  ASSERT_TRUE(stopped);
  EXPECT_EQ(state("low"), "evicting");
  ok(TaskEnded{{"low", 0, 0}, Outcome::Stopped});
  EXPECT_EQ(state("low"), "waiting");
  EXPECT_EQ(started(engine.tick(now), "high").size(), 1u);
  EXPECT_EQ(state("low"), "waiting");
  engine.verify();
}

// Somebody is found on the node who has what was promised: the promise keeps others off for
// nothing.
TEST_F(EngineTest, APromiseThatCanNotBeKeptIsTakenBack) {
  Node n = node("n1", 8);
  n.capacity.named = {{"port", 1}};
  ok(PutNode{n});
  ok(SubmitJob{job("low", 8, 1, 100)});
  engine.tick(now);
  Job high = job("high", 4, 1, 2000);
  high.groups[0].request.resources.named = {{"port", 1}};
  ok(SubmitJob{high});
  engine.tick(now);
  Job found = job("found", 0, 1, 3000);
  found.groups[0].request.resources.named = {{"port", 1}};
  ok(SubmitJob{found});
  ok(AdoptTask{{"found", 0, 0}, "n1", {}, {}, now, false});
  ok(TaskEnded{{"low", 0, 0}, Outcome::Stopped});
  EXPECT_EQ(engine.cluster().job(engine.cluster().find_job("high")).nominated_tasks, 1);
  engine.tick(now);
  EXPECT_EQ(engine.cluster().job(engine.cluster().find_job("high")).nominated_tasks, 0);
  EXPECT_EQ(state("high"), "waiting");
  engine.verify();
}

TEST_F(EngineTest, AGangIsMendedWhenANodeDisappears) {
  for (const char* name : {"n1", "n2", "n3"}) ok(PutNode{node(name, 8)});
  ok(SubmitJob{job("gang", 8, 2)});
  const auto places = started(engine.tick(now), "gang");
  ASSERT_EQ(places.size(), 2u);
  ok(RemoveNode{places[0].node});
  const auto mended = started(engine.tick(now), "gang");
  ASSERT_EQ(mended.size(), 1u);
  EXPECT_EQ(mended[0].task.rank, places[0].task.rank);
  EXPECT_NE(mended[0].node, places[0].node);
  EXPECT_NE(mended[0].node, places[1].node);
  engine.verify();
}

TEST_F(EngineTest, ABackfillJobDoesNotDelayAReservation) {
  ok(PutNode{node("n1", 8)});
  Job running = job("running", 6);
  running.expected_runtime = hours(1);
  ok(SubmitJob{running});
  engine.tick(now);
  ok(SubmitJob{job("big", 8)});
  Job slow = job("slow", 2);
  slow.expected_runtime = hours(2);
  ok(SubmitJob{slow});
  Job quick = job("quick", 2);
  quick.expected_runtime = minutes(30);
  ok(SubmitJob{quick});
  const Effects effects = engine.tick(now);
  EXPECT_TRUE(started(effects, "slow").empty());
  EXPECT_EQ(started(effects, "quick").size(), 1u);
  const auto big = engine.explain("big", now);
  ASSERT_TRUE(big->expected_start.has_value());
  EXPECT_EQ(big->expected_start->ms, now.ms + hours(1).ms);
  engine.verify();
}

TEST_F(EngineTest, AJobThatWaitsForItsTenantKnowsWhenItWillStart) {
  ok(PutNode{node("n1", 8)});
  Tenant small;
  small.id = "small";
  small.limit.gpu_milli = 4 * kWholeGpu;
  ok(PutTenant{small});
  const auto submit = [&](const std::string& id, int gpus, int hours_long) {
    Job one = job(id, gpus);
    one.tenant = "small";
    if (hours_long > 0) one.expected_runtime = hours(hours_long);
    ok(SubmitJob{one});
    engine.tick(now);
  };
  submit("runs", 3, 2);
  submit("also", 1, 1);
  submit("next", 3, 3);
  submit("after", 4, 1);
  const std::uint64_t before = engine.hash();
  const auto next = engine.explain("next", now);
  ASSERT_EQ(next->why->constraint, Constraint::Quota);
  ASSERT_TRUE(next->expected_start.has_value());
  EXPECT_EQ(next->expected_start->ms, (now + hours(2)).ms);
  EXPECT_NE(next->why->sentence.find("; expected start "), std::string::npos);
  const auto after = engine.explain("after", now);
  ASSERT_TRUE(after->expected_start.has_value());
  EXPECT_EQ(after->expected_start->ms, (now + hours(5)).ms);
  const auto dry = engine.dry_run(
      [&] {
        Job one = job("dry", 2);
        one.tenant = "small";
        return one;
      }(),
      now);
  ASSERT_TRUE(dry->why.has_value());
  EXPECT_EQ(dry->why->constraint, Constraint::Quota) << dry->why->sentence;
  EXPECT_TRUE(dry->expected_start.has_value());
  EXPECT_EQ(before, engine.hash());
  engine.verify();
}

TEST_F(EngineTest, ATenantThatDoesNotSayHowLongItsJobsTakeKnowsNoStart) {
  ok(PutNode{node("n1", 8)});
  Tenant small;
  small.id = "small";
  small.limit.gpu_milli = kWholeGpu;
  ok(PutTenant{small});
  for (const char* id : {"runs", "waits"}) {
    Job one = job(id, 1);
    one.tenant = "small";
    ok(SubmitJob{one});
  }
  engine.tick(now);
  const auto waits = engine.explain("waits", now);
  ASSERT_EQ(waits->why->constraint, Constraint::Quota);
  EXPECT_FALSE(waits->expected_start.has_value());
}

TEST_F(EngineTest, ADryRunChangesNothing) {
  ok(PutNode{node("n1", 8)});
  ok(SubmitJob{job("low", 8, 1, 100)});
  engine.tick(now);
  const std::uint64_t before = engine.hash();
  const auto dry = engine.dry_run(job("high", 8, 1, 2000), now);
  ASSERT_TRUE(dry.ok());
  EXPECT_FALSE(dry->starts_now);
  ASSERT_EQ(dry->evicts.size(), 1u);
  EXPECT_EQ(dry->evicts[0].job, "low");
  EXPECT_EQ(before, engine.hash());
  engine.verify();
}

TEST_F(EngineTest, ARestoredSnapshotGoesOnTheSameWay) {
  for (int i = 0; i < 4; ++i) ok(PutNode{node("n" + std::to_string(i), 8)});
  Rng rng(7);
  for (int i = 0; i < 30; ++i)
    ok(SubmitJob{job("j" + std::to_string(i), static_cast<int>(rng.between(1, 8)),
                     static_cast<int>(rng.between(1, 3)),
                     static_cast<int>(rng.between(100, 2000)))});
  engine.tick(now);
  auto twin = Engine::restore(engine.snapshot());
  ASSERT_EQ(engine.hash(), twin->hash());
  twin->verify();
  for (int i = 0; i < 30; ++i) {
    const Command end = TaskEnded{{"j" + std::to_string(i), 0, 0}, Outcome::Succeeded};
    const auto a = engine.handle(end, now);
    const auto b = twin->handle(end, now);
    EXPECT_EQ(a.ok(), b.ok());
    EXPECT_EQ(engine.tick(now).size(), twin->tick(now).size());
    ASSERT_EQ(engine.hash(), twin->hash()) << "after job " << i;
  }
}

}  // namespace
}  // namespace gs
