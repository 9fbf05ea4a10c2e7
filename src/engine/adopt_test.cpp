// What is found running when an engine starts over keeps its place, its instances and its clock.
#include <gtest/gtest.h>

#include "engine/engine.hpp"

namespace gs {
namespace {

class Adopt : public testing::Test {
 protected:
  Adopt() {
    Tenant tenant;
    tenant.id = "t";
    tell(PutTenant{tenant});
    Node node;
    node.name = "n1";
    node.capacity = {64'000, 512LL * 1024 * kMiB, {}};
    for (int i = 0; i < 2; ++i) {
      Gpu gpu;
      gpu.index = i;
      gpu.model = "H100-SXM5-80GB";
      gpu.memory_mib = 81'920;
      gpu.mig_enabled = gpu.mig_dynamic = i == 1;
      node.gpus.push_back(gpu);
    }
    tell(PutNode{node});
  }

  Effects tell(const Command& command, Instant now = Instant{1000}) {
    Result<Effects> effects = engine_.handle(command, now);
    EXPECT_TRUE(effects.ok()) << (effects.ok() ? "" : effects.error().message);
    return effects.ok() ? *effects : Effects{};
  }

  // "job node:gpus", one after the other.
  static std::string starts(const Effects& effects) {
    std::string text;
    for (const Effect& effect : effects)
      if (const auto* start = std::get_if<StartTasks>(&effect))
        for (const TaskPlace& place : start->tasks) {
          text += (text.empty() ? "" : ", ") + start->job + " " + place.node + ":";
          for (const int gpu : place.gpus) text += std::to_string(gpu);
        }
    return text;
  }

  int promised(const std::string& job) const {
    const Cluster& cluster = engine_.cluster();
    int tasks = 0;
    for (const TaskId id : cluster.job(cluster.find_job(job)).tasks)
      tasks += cluster.task(id).state == TaskState::Nominated;
    return tasks;
  }

  static Job job(const std::string& id) {
    Job job;
    job.id = id;
    job.tenant = "t";
    job.groups.emplace_back();
    return job;
  }

  static Job mig_job(const std::string& id) {
    Job j = job(id);
    j.groups[0].request.gpu.sharing = Sharing::Mig;
    j.groups[0].request.gpu.mig = {{"3g.40gb", 1}};
    return j;
  }

  Engine engine_;
};

TEST_F(Adopt, MigInstanceIsTakenAndNotGivenToAnother) {
  tell(SubmitJob{mig_job("a")});
  tell(AdoptTask{{"a", 0, 0}, "n1", {}, {{1, "3g.40gb", 4, true}}, Instant{500}, false});
  tell(SubmitJob{mig_job("b")});
  const Effects effects = engine_.tick(Instant{2000});
  const auto start = std::find_if(effects.begin(), effects.end(), [](const Effect& e) {
    return std::holds_alternative<StartTasks>(e);
  });
  ASSERT_NE(start, effects.end());
  EXPECT_EQ(std::get<StartTasks>(*start).tasks.at(0).mig.at(0).start, 0);
  engine_.verify();
}

TEST_F(Adopt, ExistingInstanceIsUsedAndNotCutAgain) {
  Node node = engine_.cluster().node(NodeId{0}).spec;
  node.gpus[1].mig_dynamic = false;
  node.gpus[1].mig = {{"3g.40gb", 0}, {"3g.40gb", 4}};
  tell(PutNode{node});
  tell(SubmitJob{mig_job("a")});
  tell(AdoptTask{{"a", 0, 0}, "n1", {}, {{1, "3g.40gb", 4, true}}, Instant{500}, false});
  EXPECT_EQ(engine_.cluster().node(NodeId{0}).mig_gpu(1)->instances.size(), 2U);
  engine_.verify();
}

TEST_F(Adopt, TakenMigInstanceIsRefused) {
  tell(SubmitJob{mig_job("a")});
  tell(SubmitJob{mig_job("b")});
  tell(AdoptTask{{"a", 0, 0}, "n1", {}, {{1, "3g.40gb", 4, true}}, Instant{500}, false});
  const auto again = engine_.handle(
      AdoptTask{{"b", 0, 0}, "n1", {}, {{1, "3g.40gb", 4, true}}, Instant{500}}, Instant{1000});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::Conflict);
  engine_.verify();
}

TEST_F(Adopt, MemberThatHasSucceededIsNotStartedAgain) {
  Node second = engine_.cluster().node(NodeId{0}).spec;
  second.name = "n2";
  tell(PutNode{second});
  Job gang = job("a");
  gang.groups[0].count = 2;
  gang.groups[0].request.gpu.count = 1;
  tell(SubmitJob{gang});
  tell(AdoptTask{{"a", 0, 1}, "n1", {0}, {}, Instant{500}, false});
  tell(AdoptTask{{"a", 0, 0}, "n1", {}, {}, Instant{500}, true});
  for (const Effect& effect : engine_.tick(Instant{2000}))
    EXPECT_FALSE(std::holds_alternative<StartTasks>(effect));
  const Effects effects = tell(TaskEnded{{"a", 0, 1}, Outcome::Succeeded}, Instant{3000});
  ASSERT_FALSE(effects.empty());
  EXPECT_EQ(std::get<JobChanged>(effects.back()).state, "completed");
}

// Whoever is done has arrived, and nobody else with it: ranks do not come in order.
TEST_F(Adopt, GangWithADoneMemberWaitsForThoseThatHaveNotArrived) {
  Job gang = job("a");
  gang.groups[0].count = 3;
  gang.groups[0].request.gpu.count = 1;
  gang.groups[0].request.gpu.sharing = Sharing::Shared;
  gang.groups[0].request.gpu.milli = 100;
  tell(SubmitJob{gang});
  for (int rank = 0; rank < 3; ++rank)
    tell(AdoptTask{{"a", 0, rank}, "n1", {0}, {}, Instant{500}, false});
  tell(TaskEnded{{"a", 0, 2}, Outcome::Succeeded});
  for (int rank = 0; rank < 2; ++rank) tell(TaskEnded{{"a", 0, rank}, Outcome::Stopped});
  tell(MembersArrived{"a", 2});
  for (const Effect& effect : engine_.tick(Instant{2000}))
    EXPECT_FALSE(std::holds_alternative<StartTasks>(effect)) << "1 is done, 1 is there, 3 it needs";
  tell(MembersArrived{"a", 3}, Instant{3000});
  std::size_t started = 0;
  for (const Effect& effect : engine_.tick(Instant{4000}))
    if (const auto* start = std::get_if<StartTasks>(&effect)) started += start->tasks.size();
  EXPECT_EQ(started, 2U);
}

// A member that is lost after another one succeeded is still needed.
TEST_F(Adopt, GangIsNotCompleteWhenItsLastMemberIsLost) {
  Node second = engine_.cluster().node(NodeId{0}).spec;
  second.name = "n2";
  tell(PutNode{second});
  Job gang = job("a");
  gang.groups[0].count = 2;
  gang.groups[0].request.gpu.count = 1;
  tell(SubmitJob{gang});
  tell(AdoptTask{{"a", 0, 0}, "n1", {0}, {}, Instant{500}, false});
  tell(AdoptTask{{"a", 0, 1}, "n2", {0}, {}, Instant{500}, false});
  tell(TaskEnded{{"a", 0, 1}, Outcome::Succeeded}, Instant{2000});
  for (const Effect& effect : tell(RemoveNode{"n1"}, Instant{3000}))
    if (const auto* changed = std::get_if<JobChanged>(&effect)) {
      EXPECT_NE(changed->state, "completed");
    }
  bool again = false;
  for (const Effect& effect : engine_.tick(Instant{4000}))
    if (const auto* start = std::get_if<StartTasks>(&effect))
      again = start->tasks.size() == 1 && start->tasks[0].task.rank == 0;
  EXPECT_TRUE(again);
}

TEST_F(Adopt, TimeLimitCountsFromTheRealStart) {
  Job limited = job("a");
  limited.groups[0].request.gpu.count = 1;
  limited.max_runtime = seconds(10);
  tell(SubmitJob{limited}, Instant{9'000});
  tell(AdoptTask{{"a", 0, 0}, "n1", {0}, {}, Instant{1'000}}, Instant{9'000});
  EXPECT_EQ(engine_.next_deadline(), Instant{11'000});
  const Effects effects = engine_.tick(Instant{11'000});
  ASSERT_FALSE(effects.empty());
  ASSERT_TRUE(std::holds_alternative<StopTasks>(effects.front()));
  EXPECT_EQ(std::get<StopTasks>(effects.front()).reason, StopReason::TimeLimit);
}

// Whoever is found on a device has it, whatever was promised to somebody else.
TEST_F(Adopt, APromiseDoesNotKeepAwayWhatRuns) {
  Job low = job("low");
  low.groups[0].request.gpu.count = 1;
  tell(SubmitJob{low});
  EXPECT_EQ(starts(engine_.tick(Instant{1500})), "low n1:0");
  tell(TaskStarted{{"low", 0, 0}}, Instant{1600});
  Job high = job("high");
  high.priority = 1000;
  high.groups[0].request.gpu.count = 1;
  tell(SubmitJob{high}, Instant{1700});
  EXPECT_EQ(starts(engine_.tick(Instant{2000})), "") << "it is promised what low has to leave";
  tell(TaskEnded{{"low", 0, 0}, Outcome::Stopped}, Instant{2100});
  Job found = job("found");
  found.groups[0].request.gpu.count = 1;
  tell(SubmitJob{found}, Instant{2200});
  tell(AdoptTask{{"found", 0, 0}, "n1", {0}, {}, Instant{500}, false}, Instant{2200});
  EXPECT_EQ(starts(engine_.tick(Instant{3000})), "");
  tell(TaskEnded{{"found", 0, 0}, Outcome::Succeeded}, Instant{4000});
  EXPECT_EQ(starts(engine_.tick(Instant{5000})), "high n1:0");
}

TEST_F(Adopt, APromiseOfAnInstanceDoesNotKeepAwayWhatRuns) {
  Job low = mig_job("low");
  low.groups[0].request.gpu.mig = {{"7g.80gb", 1}};
  tell(SubmitJob{low});
  EXPECT_EQ(starts(engine_.tick(Instant{1500})), "low n1:");
  tell(TaskStarted{{"low", 0, 0}}, Instant{1600});
  Job high = low;
  high.id = "high";
  high.priority = 1000;
  tell(SubmitJob{high}, Instant{1700});
  EXPECT_EQ(starts(engine_.tick(Instant{2000})), "") << "it is promised what low has to leave";
  tell(TaskEnded{{"low", 0, 0}, Outcome::Stopped}, Instant{2100});
  Job found = low;
  found.id = "found";
  tell(SubmitJob{found}, Instant{2200});
  tell(AdoptTask{{"found", 0, 0}, "n1", {}, {{1, "7g.80gb", 0, false}}, Instant{500}, false},
       Instant{2200});
  EXPECT_EQ(promised("high"), 0) << "somebody has it";
  engine_.verify();
  EXPECT_EQ(starts(engine_.tick(Instant{3000})), "");
  tell(TaskEnded{{"found", 0, 0}, Outcome::Succeeded}, Instant{4000});
  EXPECT_EQ(starts(engine_.tick(Instant{5000})), "high n1:");
}

}  // namespace
}  // namespace gs
