#include "cluster/cluster.hpp"

#include <gtest/gtest.h>

#include "cluster/trial.hpp"
#include "model/sample_test.hpp"

namespace gs {
namespace {

Node h100_node(const std::string& name, int gpus) {
  Node node = sample_node(name, gpus, "H100-SXM5-80GB");
  node.capacity.cpu_milli = 64'000;
  node.capacity.memory_bytes = std::int64_t{512} * 1024 * kMiB;
  return node;
}

Job job_of(const std::string& id, GpuRequest gpu, int count = 1) {
  Job job;
  job.id = id;
  job.tenant = "t";
  Group group;
  group.count = count;
  group.request.gpu = std::move(gpu);
  group.request.resources.cpu_milli = 1'000;
  job.groups.push_back(group);
  return job;
}

GpuRequest whole(int count) {
  GpuRequest gpu;
  gpu.count = count;
  return gpu;
}

GpuRequest shared(int milli, std::int64_t memory_mib = 0) {
  GpuRequest gpu;
  gpu.count = 1;
  gpu.sharing = Sharing::Shared;
  gpu.milli = milli;
  gpu.memory_mib = memory_mib;
  return gpu;
}

class Books : public testing::Test {
 protected:
  Books() {
    Tenant parent;
    parent.id = "org";
    cluster.put_tenant(parent);
    Tenant tenant;
    tenant.id = "t";
    tenant.parent = "org";
    t = cluster.put_tenant(tenant);
    n = cluster.put_node(h100_node("n1", 4));
  }
  JobId add(const Job& job) { return cluster.add_job(job, t); }
  TaskId run(JobId job, GpuMask gpus, TaskState state = TaskState::Running, int rank = 0) {
    const TaskId id = cluster.place(job, 0, rank, Allocation{n, gpus, {}}, state, {});
    cluster.verify();
    return id;
  }
  const NodeState& node() const { return cluster.node(n); }
  PinOwner owner(JobId job) const {
    return {cluster.shapes().at(cluster.shape_of(job).groups[0].shape), job};
  }

  Cluster cluster;
  TenantId t;
  NodeId n;
};

TEST_F(Books, a_task_is_charged_to_node_job_tenant_and_its_parents) {
  const JobId job = add(job_of("a", whole(2)));
  const TaskId task = run(job, 0b11);
  EXPECT_EQ(node().free_gpus(View::Now), 0b1100U);
  EXPECT_EQ(node().cpu_milli.used, 1'000);
  EXPECT_EQ(cluster.tenant(t).used.gpu_milli, 2'000);
  EXPECT_EQ(cluster.tenant(t).used.gpu_memory_mib, 160'000);
  EXPECT_EQ(cluster.tenant(cluster.find_tenant("org")).used.gpu_milli, 2'000);
  EXPECT_EQ(cluster.tenant(t).running_jobs, 1);
  EXPECT_EQ(cluster.job(job).active_tasks, 1);
  cluster.remove_task(task);
  cluster.verify();
  EXPECT_EQ(node().free_gpus(View::Now), 0b1111U);
  EXPECT_EQ(cluster.tenant(t).used, Usage{});
  EXPECT_EQ(cluster.tenant(t).running_jobs, 0);
}

TEST_F(Books, what_is_releasing_is_free_in_the_future_only_and_counts_for_no_tenant) {
  const TaskId task = run(add(job_of("a", whole(1))), 0b1);
  cluster.set_task_state(task, TaskState::Releasing);
  cluster.verify();
  EXPECT_EQ(node().free_gpus(View::Now), 0b1110U);
  EXPECT_EQ(node().free_gpus(View::Future), 0b1111U);
  EXPECT_EQ(cluster.tenant(t).used.gpu_milli, 0);
}

TEST_F(Books, what_is_promised_is_free_for_nobody) {
  const TaskId leaving = run(add(job_of("a", whole(1))), 0b1);
  cluster.set_task_state(leaving, TaskState::Releasing);
  run(add(job_of("b", whole(1))), 0b1, TaskState::Nominated);
  EXPECT_EQ(node().free_gpus(View::Future), 0b1110U);
  EXPECT_EQ(cluster.tenant(t).used.gpu_milli, 1'000) << "the one that was promised it";
}

TEST_F(Books, two_parts_of_a_gpu_are_two_tasks_on_it) {
  run(add(job_of("a", shared(300))), 0b1);
  run(add(job_of("b", shared(0, 40'000))), 0b1);
  EXPECT_EQ(node().free_milli(0, View::Now), 200);
  EXPECT_EQ(node().free_memory_mib(0, View::Now), 80'000 - 24'000 - 40'000);
  EXPECT_EQ(node().partly, 0b1U);
  EXPECT_EQ(node().free_gpus(View::Now), 0b1110U);
}

TEST_F(Books, used_counts_per_model) {
  run(add(job_of("a", whole(1))), 0b1);
  const auto model = cluster.shapes().models().intern("H100-SXM5-80GB");
  EXPECT_EQ(cluster.tenant(t).milli_by_model[model], 1'000);
}

// Whoever keeps what follows from the nodes has to notice when one may be used otherwise.
TEST_F(Books, what_may_be_used_of_a_node_has_a_version) {
  std::uint64_t version = cluster.spec_version();
  const auto changes = [&] { return std::exchange(version, cluster.spec_version()) != version; };
  cluster.set_gpu(n, 1, Health::Unknown, {40, false, false});
  EXPECT_TRUE(changes());
  cluster.set_gpu(n, 1, Health::Unknown, {45, false, false});
  EXPECT_FALSE(changes()) << "a few degrees mean nothing";
  cluster.set_gpu(n, 1, Health::Healthy, {90, true, true});
  EXPECT_FALSE(changes()) << "healthy, but hot";
  cluster.set_hot(n, 0);
  EXPECT_TRUE(changes());
  cluster.set_cordoned(n, true);
  EXPECT_TRUE(changes());
  cluster.set_ready(n, false);
  EXPECT_TRUE(changes());
}

TEST_F(Books, pinned_tasks_of_a_job_share_a_device_that_others_can_not_have) {
  GpuRequest pin = whole(1);
  pin.pinned_ids = {2};
  Job job = job_of("a", pin, 2);
  job.groups[0].request.only_nodes = {"n1"};
  const JobId a = add(job);
  const TaskId first = run(a, 0b100, TaskState::Running, 0);
  const TaskId second = run(a, 0b100, TaskState::Running, 1);
  EXPECT_EQ(node().gpus[2].pin_owner, owner(a));
  EXPECT_EQ(node().free_gpus(View::Now), 0b1011U);

  job.id = "b";
  const JobId b = add(job);
  cluster.set_task_state(first, TaskState::Releasing);
  cluster.set_task_state(second, TaskState::Releasing);
  EXPECT_FALSE(node().gpus[2].pin_owner.valid());
  run(b, 0b100, TaskState::Nominated);
  cluster.remove_task(first);
  EXPECT_EQ(node().gpus[2].pin_owner, owner(b))
      << "whoever leaves takes nothing from the next owner";
  cluster.verify();
}

TEST_F(Books, a_job_that_is_forgotten_leaves_its_record_to_the_next) {
  const JobId a = add(job_of("a", whole(1)));
  cluster.forget_job(a);
  EXPECT_FALSE(cluster.find_job("a").valid());
  EXPECT_EQ(add(job_of("b", whole(1))), a);
  cluster.verify();
}

TEST_F(Books, missing_ranks_are_those_without_a_place) {
  const JobId job = add(job_of("a", whole(1), 4));
  EXPECT_EQ(cluster.missing_ranks(job, 0), (std::vector<int>{0, 1, 2, 3}));
  run(job, 0b1, TaskState::Running, 1);
  const TaskId leaving = run(job, 0b10, TaskState::Running, 3);
  cluster.set_task_state(leaving, TaskState::Releasing);
  EXPECT_EQ(cluster.missing_ranks(job, 0), (std::vector<int>{0, 2, 3}));
}

TEST_F(Books, total_counts_what_is_usable) {
  EXPECT_EQ(cluster.total().gpu_milli, 4'000);
  cluster.set_gpu(n, 0, Health::Unhealthy, {});
  EXPECT_EQ(cluster.total().gpu_milli, 3'000);
  cluster.set_cordoned(n, true);
  EXPECT_EQ(cluster.total().gpu_milli, 0);
}

TEST_F(Books, a_node_that_returns_has_forgotten_its_past) {
  cluster.set_gpu(n, 0, Health::Healthy, {90, true, true});
  cluster.set_performance(n, 0.5);
  cluster.remove_node(n);
  cluster.verify();
  n = cluster.put_node(h100_node("n1", 4));
  EXPECT_EQ(node().free_gpus(View::Now), 0b1111U);
  EXPECT_EQ(node().performance, 1.0);
}

TEST_F(Books, a_report_that_exchanges_a_device_names_the_tasks_on_it) {
  const TaskId on_0 = run(add(job_of("a", whole(1))), 0b1);
  const TaskId on_3 = run(add(job_of("b", whole(1))), 0b1000);
  EXPECT_TRUE(cluster.displaced_by(h100_node("n1", 4)).empty());
  EXPECT_EQ(cluster.displaced_by(h100_node("n1", 3)), (std::vector<TaskId>{on_3}));
  Node other = h100_node("n1", 4);
  other.gpus[0].model = "A100-SXM4-40GB";
  EXPECT_EQ(cluster.displaced_by(other), (std::vector<TaskId>{on_0}));
  cluster.remove_task(on_0);
  cluster.put_node(other);
  cluster.verify();
}

TEST_F(Books, a_report_with_fewer_gpus_takes_the_free_ones_away) {
  run(add(job_of("a", whole(1))), 0b1);
  cluster.put_node(h100_node("n1", 2));
  cluster.verify();
  EXPECT_EQ(node().free_gpus(View::Now), 0b10U);
}

Node mig_node(const std::string& name) {
  Node node = h100_node(name, 1);
  node.gpus[0].mig_enabled = node.gpus[0].mig_dynamic = true;
  return node;
}

class MigBooks : public Books {
 protected:
  MigBooks() {
    n = cluster.put_node(mig_node("m1"));
    GpuRequest ask;
    ask.sharing = Sharing::Mig;
    ask.mig = {{"1g.10gb", 1}};
    job = add(job_of("a", ask, 2));
  }
  Allocation cut(int start) {
    const auto profile = cluster.shapes().resources().intern("mig:1g.10gb");
    return {n, 0, {MigPick{0, static_cast<std::int8_t>(start), 1, 0, profile, true}}};
  }
  std::size_t instances() const { return node().mig[0].instances.size(); }
  JobId job;
};

TEST_F(MigBooks, an_instance_that_was_cut_stays_when_its_task_ends) {
  const TaskId task = cluster.place(job, 0, 0, cut(3), TaskState::Running, {});
  cluster.verify();
  EXPECT_TRUE(node().mig[0].instances[0].used);
  cluster.remove_task(task);
  cluster.verify();
  ASSERT_EQ(instances(), 1U);
  EXPECT_TRUE(node().mig[0].instances[0].free(View::Now));
}

TEST_F(MigBooks, an_instance_that_was_only_promised_goes_with_its_task) {
  const TaskId task = cluster.place(job, 0, 0, cut(3), TaskState::Nominated, {});
  cluster.remove_task(task);
  cluster.verify();
  EXPECT_EQ(instances(), 0U);
}

TEST_F(MigBooks, a_report_that_does_not_know_yet_takes_nothing_from_a_task) {
  cluster.place(job, 0, 0, cut(3), TaskState::Running, {});
  Node report = mig_node("m1");
  report.gpus[0].mig = {{"2g.20gb", 2}, {"1g.10gb", 0}};
  cluster.put_node(report);
  cluster.verify();
  ASSERT_EQ(instances(), 2U) << "2g.20gb@2 is under our task";
  EXPECT_EQ(node().mig[0].instances[0].start, 0);
  EXPECT_TRUE(node().mig[0].instances[1].used);
}

TEST_F(MigBooks, a_dropped_promise_is_undone_with_its_instance) {
  const TaskId task = cluster.place(job, 0, 0, cut(3), TaskState::Nominated, {});
  const std::uint64_t before = cluster.hash();
  {
    Trial trial(cluster);
    trial.drop(task);
    trial.place(job, 0, 1, cut(3), TaskState::Running, {});
    cluster.verify();
  }
  cluster.verify();
  EXPECT_EQ(cluster.hash(), before);
}

TEST(ClusterHash, does_not_depend_on_the_order_of_arrival) {
  const auto build = [](bool turned) {
    Cluster cluster;
    Tenant t;
    t.id = "t";
    Tenant u;
    u.id = "u";
    cluster.put_tenant(turned ? u : t);
    cluster.put_tenant(turned ? t : u);
    cluster.put_node(h100_node(turned ? "b" : "a", 2));
    cluster.put_node(h100_node(turned ? "a" : "b", 2));
    const JobId job = cluster.add_job(job_of("j", whole(1), 2), cluster.find_tenant("t"));
    for (const int rank : {0, 1}) {
      const int r = turned ? 1 - rank : rank;
      cluster.place(job, 0, r, Allocation{cluster.find_node(r == 0 ? "a" : "b"), 0b1, {}},
                    TaskState::Running, {});
    }
    return cluster.hash();
  };
  EXPECT_EQ(build(false), build(true));
}

TEST(ClusterHash, tells_different_places_apart) {
  const auto build = [](GpuMask gpus, TaskState state) {
    Cluster cluster;
    Tenant t;
    t.id = "t";
    const TenantId id = cluster.put_tenant(t);
    const NodeId n = cluster.put_node(h100_node("a", 2));
    cluster.place(cluster.add_job(job_of("j", whole(1)), id), 0, 0, Allocation{n, gpus, {}}, state,
                  {});
    return cluster.hash();
  };
  EXPECT_NE(build(0b1, TaskState::Running), build(0b10, TaskState::Running));
  EXPECT_NE(build(0b1, TaskState::Running), build(0b1, TaskState::Nominated));
}

using VerifyDeathTest = Books;

TEST_F(VerifyDeathTest, a_gpu_given_to_two_is_found) {
  run(add(job_of("a", whole(1))), 0b1);
  const JobId b = add(job_of("b", whole(1)));
  cluster.place(b, 0, 0, Allocation{n, 0b1, {}}, TaskState::Running, {});
  EXPECT_DEATH(cluster.verify(), "gpu 0 is held twice");
}

TEST_F(VerifyDeathTest, a_hold_that_was_not_taken_back_is_found) {
  Hold hold;
  hold.parts = {{0, 1000, 0}};
  cluster.hold(n, hold, +1);
  EXPECT_DEATH(cluster.verify(), "gpu 0 milli says used 0, releasing 0, nominated 1000");
  cluster.hold(n, hold, -1);
  cluster.verify();
}

TEST_F(VerifyDeathTest, books_of_a_tenant_that_are_wrong_are_found) {
  run(add(job_of("a", whole(1))), 0b1);
  cluster.tenant(t).used.gpu_milli -= 1;
  EXPECT_DEATH(cluster.verify(), "tenant t: books say 999 gpu_milli");
}

TEST_F(VerifyDeathTest, a_job_counter_that_is_wrong_is_found) {
  const JobId a = add(job_of("a", whole(1)));
  run(a, 0b1);
  cluster.job(a).nominated_tasks = 1;
  EXPECT_DEATH(cluster.verify(), "job a: nominated tasks are miscounted");
}

}  // namespace
}  // namespace gs
