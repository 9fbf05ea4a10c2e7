#include "cycle/stay.hpp"

#include <gtest/gtest.h>

#include "placement/mig.hpp"
#include "queue/lab_test.hpp"

namespace gs {
namespace {

class Stay : public testing::Test {
 protected:
  VictimTask leave(Trial& trial, JobId job, int rank) {
    for (const TaskId id : lab.cluster.job(job).tasks) {
      const Task& task = lab.cluster.task(id);
      if (task.rank != rank) continue;
      trial.evict(id);
      return {id, job, 0, rank, task.place.node, {}, {}};
    }
    return {};
  }
  void promise(Trial& trial, JobId job, int rank, NodeId node, int gpu) {
    trial.place(job, 0, rank, {node, gpu_bit(gpu), {}}, TaskState::Nominated, Instant{});
  }
  bool runs(const VictimTask& task) const {
    return lab.cluster.task(task.id).state == TaskState::Running;
  }

  // A node with one GPU that is cut into two instances of 1g.10gb.
  NodeId mig_node(const std::string& name) {
    Node node = sample_node(name, 1);
    node.capacity = {1'000'000, 1'000'000'000'000, {}};
    node.gpus[0].mig_enabled = true;
    node.gpus[0].mig = {{"1g.10gb", -1}, {"1g.10gb", -1}};
    return lab.cluster.put_node(node);
  }
  static Job mig_job(const std::string& id, int tasks = 1) {
    Job job = QueueLab::job(id, 0, tasks, tasks);
    job.groups[0].request.gpu.sharing = Sharing::Mig;
    job.groups[0].request.gpu.mig = {{"1g.10gb", 1}};
    return job;
  }
  Allocation instance_on(JobId job, NodeId node, View view) const {
    const Shape& shape = lab.cluster.shapes().at(lab.cluster.shape_of(job).groups[0].shape);
    return {node, 0, choose_mig(lab.cluster.node(node), shape, view).value()};
  }
  TaskId nominated(JobId job) const {
    for (const TaskId id : lab.cluster.job(job).tasks)
      if (lab.cluster.task(id).state == TaskState::Nominated) return id;
    return {};
  }

  QueueLab lab;
  NodeId a = lab.node("a", 2);
  NodeId b = lab.node("b", 1);
  TenantId tenant = lab.tenant("t", 0);
};

// The other one was to move to where a member could stay. Once it stays itself, so does the member,
// although the rest of its gang has to go.
TEST_F(Stay, who_goes_home_makes_room_for_others_to_stay) {
  Job gang = QueueLab::job("gang", 1, 2, 1);
  gang.groups[0].topology.required_level = "node";
  const JobId together = lab.running(gang, tenant, a);
  const JobId other = lab.running(QueueLab::job("other", 1), tenant, b);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, other, 0), leave(trial, together, 1),
                                           leave(trial, together, 0)};
  promise(trial, gets, 0, a, 1);
  promise(trial, other, 0, a, 0);
  const auto lost = let_stay(trial, victims, {gets});
  EXPECT_TRUE(runs(victims[0]));
  EXPECT_TRUE(runs(victims[2]));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0], &victims[1]);
}

TEST_F(Stay, a_gang_that_moves_together_leaves_nobody_behind) {
  Job gang = QueueLab::job("gang", 1, 2, 1);
  gang.groups[0].topology.required_level = "node";
  const JobId together = lab.running(gang, tenant, a);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  const NodeId c = lab.node("c", 2);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, together, 1), leave(trial, together, 0)};
  promise(trial, gets, 0, a, 1);
  promise(trial, together, 0, c, 0);
  promise(trial, together, 1, c, 1);
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_FALSE(runs(victims[0]));
  EXPECT_FALSE(runs(victims[1]));
}

TEST_F(Stay, siblings_exchange_places_that_are_alike) {
  const JobId pair = lab.running(QueueLab::job("pair", 1, 2, 1), tenant, a);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, pair, 1), leave(trial, pair, 0)};
  promise(trial, gets, 0, a, 1);
  promise(trial, pair, 0, b, 0);
  promise(trial, pair, 1, a, 0);
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_FALSE(runs(victims[0]));
  EXPECT_TRUE(runs(victims[1]));
}

TEST_F(Stay, jobs_that_only_exchange_their_places_stay) {
  const JobId here = lab.running(QueueLab::job("here", 1), tenant, a);
  const JobId there = lab.running(QueueLab::job("there", 1), tenant, b);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, here, 0), leave(trial, there, 0)};
  promise(trial, gets, 0, a, 1);
  promise(trial, here, 0, b, 0);
  promise(trial, there, 0, a, 0);
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_TRUE(runs(victims[0]));
  EXPECT_TRUE(runs(victims[1]));
}

TEST_F(Stay, siblings_that_need_no_device_do_not_swap_nodes) {
  const JobId gang = lab.add(QueueLab::job("gang", 0, 3, 1), tenant);
  lab.run(gang, 0, a);
  lab.run(gang, 1, b);
  lab.run(gang, 2, a);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  for (const NodeId node : {a, b})  // CPU for two is left
    lab.cluster.hold(node, {998'000, 0, {}, {}, {}}, +1);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, gang, 2), leave(trial, gang, 1),
                                           leave(trial, gang, 0)};
  promise(trial, gets, 0, a, 1);
  trial.place(gang, 0, 0, {b, 0, {}}, TaskState::Nominated, Instant{});
  trial.place(gang, 0, 1, {a, 0, {}}, TaskState::Nominated, Instant{});
  trial.place(gang, 0, 2, {b, 0, {}}, TaskState::Nominated, Instant{});
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_TRUE(runs(victims[1]));
  EXPECT_TRUE(runs(victims[2]));
  EXPECT_FALSE(runs(victims[0])) << "somebody has to go";
}

TEST_F(Stay, packs_of_ranks_are_not_exchanged) {
  Job packs = QueueLab::job("packs", 1, 2, 1);
  packs.groups[0].slices = {{"node", 1}};
  const JobId pair = lab.running(packs, tenant, a);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, pair, 1), leave(trial, pair, 0)};
  promise(trial, gets, 0, a, 1);
  promise(trial, pair, 0, b, 0);
  promise(trial, pair, 1, a, 0);
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_FALSE(runs(victims[0]));
  EXPECT_FALSE(runs(victims[1]));
}

TEST_F(Stay, those_that_are_enough_stay_without_the_one_that_has_to_go) {
  const NodeId c = lab.node("c", 3);
  const JobId gang = lab.running(QueueLab::job("gang", 1, 3, 2), tenant, c);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, gang, 2), leave(trial, gang, 1),
                                           leave(trial, gang, 0)};
  promise(trial, gets, 0, c, 2);
  const auto lost = let_stay(trial, victims, {gets});
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0], &victims[0]);
}

TEST_F(Stay, too_few_do_not_stay) {
  const NodeId c = lab.node("c", 3);
  const JobId gang = lab.running(QueueLab::job("gang", 1, 3, 3), tenant, c);
  const JobId gets = lab.add(QueueLab::job("gets", 1), tenant);
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, gang, 2), leave(trial, gang, 1),
                                           leave(trial, gang, 0)};
  promise(trial, gets, 0, c, 2);
  EXPECT_EQ(let_stay(trial, victims, {gets}).size(), 3U);
}

TEST_F(Stay, who_is_to_get_an_instance_gets_another_that_is_just_like_it) {
  const NodeId m = mig_node("m");
  const JobId has = lab.add(mig_job("has"), tenant);
  const JobId gets = lab.add(mig_job("gets"), tenant);
  lab.cluster.place(has, 0, 0, instance_on(has, m, View::Now), TaskState::Running, Instant{});
  Trial trial(lab.cluster);
  const std::vector<VictimTask> victims = {leave(trial, has, 0)};
  trial.place(gets, 0, 0, instance_on(gets, m, View::Future), TaskState::Nominated, Instant{});
  const auto id_of = [&](TaskId task) { return lab.cluster.task(task).place.mig[0].id; };
  ASSERT_EQ(id_of(nominated(gets)), id_of(victims[0].id)) << "the same one, to begin with";
  EXPECT_TRUE(let_stay(trial, victims, {gets}).empty());
  EXPECT_TRUE(runs(victims[0]));
  EXPECT_NE(id_of(nominated(gets)), id_of(victims[0].id));
  lab.cluster.verify();
}

TEST_F(Stay, a_promise_of_an_instance_is_kept_so_that_the_gang_stays) {
  const NodeId m = mig_node("m"), n = mig_node("n");
  const JobId gang = lab.add(mig_job("gang", 2), tenant);
  lab.cluster.place(gang, 0, 0, instance_on(gang, m, View::Now), TaskState::Running, Instant{});
  const TaskId promise =
      lab.cluster.place(gang, 0, 1, instance_on(gang, n, View::Now), TaskState::Nominated, {});
  Trial trial(lab.cluster);
  std::vector<VictimTask> victims = {leave(trial, gang, 0)};
  victims.push_back(
      {promise, gang, 0, 1, n, {}, std::make_shared<const Task>(lab.cluster.task(promise))});
  trial.drop(promise);
  EXPECT_TRUE(let_stay(trial, victims, {}).empty());
  EXPECT_TRUE(runs(victims[0]));
  ASSERT_TRUE(nominated(gang).valid());
  EXPECT_EQ(lab.cluster.task(nominated(gang)).place.node, n);
}

}  // namespace
}  // namespace gs
