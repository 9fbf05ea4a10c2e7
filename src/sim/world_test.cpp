#include "sim/world.hpp"

#include <gtest/gtest.h>

#include "model/sample_test.hpp"
#include "sim/demo.hpp"
#include "sim/describe.hpp"

namespace gs {
namespace {

Job job_of(const std::string& id, int gpus) {
  Job job;
  job.id = id;
  job.tenant = "a";
  job.groups.emplace_back();
  job.groups[0].request.gpu.count = gpus;
  return job;
}

void furnish(World& world, int gpus) {
  Tenant tenant;
  tenant.id = "a";
  ASSERT_TRUE(world.send(PutNode{sample_node("n1", gpus)}).ok());
  ASSERT_TRUE(world.send(PutTenant{tenant}).ok());
}

TEST(World, tasks_start_and_end_when_their_time_has_come) {
  World world({seconds(5), {}, {}, 1000, true});
  furnish(world, 2);
  world.set_duration("j", minutes(10));
  ASSERT_TRUE(world.send(SubmitJob{job_of("j", 2)}).ok());
  EXPECT_TRUE(world.settle());
  ASSERT_EQ(world.tasks().size(), 1U);
  EXPECT_EQ(world.tasks().begin()->second.state, LiveTask::State::Starting);
  EXPECT_TRUE(world.advance_to(Instant{5'000}));
  EXPECT_EQ(world.tasks().begin()->second.state, LiveTask::State::Running);
  EXPECT_TRUE(world.advance_to(Instant{604'999}));
  EXPECT_EQ(world.tasks().size(), 1U);
  EXPECT_TRUE(world.advance_to(Instant{605'000}));
  EXPECT_TRUE(world.tasks().empty());
  EXPECT_TRUE(world.surprises().empty());
}

TEST(World, a_stopped_task_holds_its_place_until_it_has_gone) {
  World world({{}, seconds(30), {}, 1000, true});
  furnish(world, 2);
  ASSERT_TRUE(world.send(SubmitJob{job_of("j", 2)}).ok());
  EXPECT_TRUE(world.settle());
  ASSERT_TRUE(world.send(CancelJob{"j"}).ok());
  ASSERT_TRUE(world.send(SubmitJob{job_of("k", 2)}).ok());
  EXPECT_TRUE(world.advance_to(Instant{29'999}));
  EXPECT_EQ(world.tasks().begin()->first.first, "j");
  EXPECT_TRUE(world.advance_to(Instant{30'000}));
  ASSERT_EQ(world.tasks().size(), 1U);
  EXPECT_EQ(world.tasks().begin()->first.first, "k");
}

TEST(World, what_happens_at_one_instant_happens_in_the_order_it_was_scheduled) {
  World world;
  furnish(world, 1);
  std::vector<std::string> order;
  world.watch([&](World&, const LogEntry& entry) {
    if (entry.command) order.push_back(describe(*entry.command));
  });
  world.schedule(Instant{1000}, SubmitJob{job_of("second", 1)});
  world.schedule(Instant{500}, SubmitJob{job_of("first", 1)});
  world.schedule(Instant{1000}, CancelJob{"second"});
  EXPECT_TRUE(world.advance_to(Instant{2000}));
  ASSERT_GE(order.size(), 3U);
  EXPECT_EQ(order.front(), "submit first of a (1 task)");
  EXPECT_EQ(order[order.size() - 2], "submit second of a (1 task)");
  EXPECT_EQ(order.back(), "cancel second");
}

TEST(World, a_node_that_disappears_takes_its_tasks_along) {
  World world;
  furnish(world, 2);
  ASSERT_TRUE(world.send(SubmitJob{job_of("j", 2)}).ok());
  EXPECT_TRUE(world.settle());
  ASSERT_TRUE(world.send(RemoveNode{"n1"}).ok());
  EXPECT_TRUE(world.settle());
  EXPECT_TRUE(world.tasks().empty());
  EXPECT_TRUE(world.surprises().empty());
}

TEST(World, the_log_plays_again_the_same_way_and_a_changed_one_is_noticed) {
  World world;
  furnish(world, 2);
  world.set_duration("j", minutes(1));
  ASSERT_TRUE(world.send(SubmitJob{job_of("j", 2)}).ok());
  EXPECT_TRUE(world.advance_to(Instant{120'000}));
  EXPECT_TRUE(replay(world.log(), world.engine().hash()).ok());
  EXPECT_FALSE(replay(world.log(), world.engine().hash() + 1).ok());
  auto log = world.log();
  log[0].effects.emplace_back(JobChanged{"ghost", "running", {}});
  EXPECT_FALSE(replay(log, world.engine().hash()).ok());
}

TEST(Describe, gpus_and_times_as_people_write_them) {
  EXPECT_EQ(describe_gpus({3, 0, 1, 2, 6}), "0-3,6");
  EXPECT_EQ(describe(Instant{3'900'000}), "1h5m");
  EXPECT_EQ(describe(Instant{}), "0s");
  EXPECT_EQ(describe(Instant::never()), "never");
}

// The demo is a story of the engine: it ends well, and names nobody without a reason.
TEST(Demo, tells_its_story_without_colours) {
  const std::string story = tell_demo(false);
  EXPECT_NE(story.find("pretrain starts on n1:0-7 n2:0-7 n3:0-7 n4:0-7"), std::string::npos);
  EXPECT_NE(story.find("expected to start at"), std::string::npos);
  EXPECT_NE(story.find("GPU 3 of n2 is broken"), std::string::npos);
  EXPECT_NE(story.find("Try next:"), std::string::npos);
  EXPECT_EQ(story.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace gs
