#include "queue/members.hpp"

#include <gtest/gtest.h>

#include "queue/lab_test.hpp"

namespace gs {
namespace {

std::vector<Member> ranks(int group, const std::vector<int>& list) {
  std::vector<Member> members;
  for (const int rank : list) members.push_back({group, rank});
  return members;
}

class MembersTest : public testing::Test {
 protected:
  QueueLab lab;
  NodeId node = lab.node("n", 16);
  TenantId tenant = lab.tenant("t", 0);
};

TEST_F(MembersTest, AGangStartsAsAWhole) {
  const JobId job = lab.add(QueueLab::job("j", 1, 3), tenant);
  EXPECT_EQ(next_members(lab.cluster, job, nullptr), ranks(0, {0, 1, 2}));
}

TEST_F(MembersTest, AnElasticJobStartsWithItsMinimumAndGrowsByOne) {
  const JobId job = lab.add(QueueLab::job("j", 1, 4, 2), tenant);
  EXPECT_EQ(next_members(lab.cluster, job, nullptr), ranks(0, {0, 1}));
  lab.run(job, 0, node);
  lab.run(job, 1, node);
  EXPECT_EQ(fill_of(lab.cluster, job, nullptr), Fill::AtMin);
  EXPECT_EQ(next_members(lab.cluster, job, nullptr), ranks(0, {2}));
  lab.run(job, 2, node);
  EXPECT_EQ(fill_of(lab.cluster, job, nullptr), Fill::AboveMin);
}

TEST_F(MembersTest, ItShrinksOneByOneThenLeavesAsAWhole) {
  const JobId job = lab.add(QueueLab::job("j", 1, 4, 2), tenant);
  std::vector<TaskId> tasks;
  for (int rank = 0; rank < 3; ++rank) tasks.push_back(lab.run(job, rank, node));
  TaskMarks taken;
  EXPECT_EQ(next_to_leave(lab.cluster, job, &taken), std::vector<TaskId>{tasks[2]});
  taken.set(tasks[2]);
  EXPECT_EQ(next_to_leave(lab.cluster, job, &taken), (std::vector<TaskId>{tasks[1], tasks[0]}));
}

TEST_F(MembersTest, ARankThatIsLeavingDoesNotWaitUnlessItWasEvictedInTheTrial) {
  const JobId job = lab.add(QueueLab::job("j", 1, 2), tenant);
  lab.run(job, 0, node);
  const TaskId leaving = lab.run(job, 1, node, TaskState::Releasing);
  EXPECT_TRUE(waiting_members(lab.cluster, job, nullptr).empty());
  EXPECT_FALSE(is_ready(lab.cluster, job));
  TaskMarks evicted;
  evicted.set(leaving);
  EXPECT_EQ(waiting_members(lab.cluster, job, &evicted), ranks(0, {1}));
}

TEST_F(MembersTest, MembersThatHaveNotArrivedDoNotCount) {
  Job spec = QueueLab::job("j", 1, 4, 3);
  spec.arrived = 2;
  const JobId job = lab.add(spec, tenant);
  EXPECT_FALSE(is_ready(lab.cluster, job));
  lab.cluster.job(job).arrived = 3;
  EXPECT_TRUE(is_ready(lab.cluster, job));
  EXPECT_EQ(waiting_members(lab.cluster, job, nullptr), ranks(0, {0, 1, 2}));
}

// Two parts of which one is enough, each a leader and two workers.
class PartsTest : public MembersTest {
 protected:
  PartsTest() {
    Job spec = QueueLab::job("j", 1);
    spec.groups.clear();
    spec.sets[0].min_children = 1;
    for (const std::string part : {"a", "b"}) {
      spec.sets.push_back({part, 0, {}, 0});
      const int set = static_cast<int>(spec.sets.size()) - 1;
      for (const auto& [name, count] : {std::pair<std::string, int>{"leader", 1}, {"worker", 2}}) {
        Group group = QueueLab::job("x", 1).groups[0];
        group.name = name;
        group.count = count;
        group.set = set;
        spec.groups.push_back(group);
      }
    }
    job = lab.add(spec, tenant);
  }
  TaskId run(int group, int rank) {
    const GpuMask free = lab.cluster.node(node).free_gpus(View::Now);
    return lab.cluster.place(job, group, rank, {node, free & ~(free - 1), {}}, TaskState::Running,
                             {});
  }
  JobId job;
};

TEST_F(PartsTest, SoManyPartsAsAreNeeded) {
  EXPECT_EQ(next_members(lab.cluster, job, nullptr), (std::vector<Member>{{0, 0}, {1, 0}, {1, 1}}));
}

TEST_F(PartsTest, ThenTheNextPartAsAWholeAndTheLastOneLeavesFirst) {
  for (const auto& [g, r] : {std::pair{0, 0}, {1, 0}, {1, 1}}) run(g, r);
  const std::vector<Member> next = next_members(lab.cluster, job, nullptr);
  EXPECT_EQ(next, (std::vector<Member>{{2, 0}, {3, 0}, {3, 1}}));
  const std::vector<TaskId> second = {run(2, 0), run(3, 0), run(3, 1)};
  const std::vector<TaskId> unit = next_to_leave(lab.cluster, job, nullptr);
  EXPECT_EQ(unit, (std::vector<TaskId>{second[0], second[2], second[1]}));
}

}  // namespace
}  // namespace gs
