// A Trial undoes itself: whatever is tried in it, in whatever order, the books are afterwards what
// they were.
#include "cluster/trial.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "model/mig.hpp"

namespace gs {
namespace {

constexpr int kNodes = 4;
constexpr int kGpus = 4;
constexpr int kTasks = 6;  // of each job

enum Kind { kWhole, kShared, kPinned, kMig, kKinds };

// Random changes to a small cluster. It keeps to the rules that decisions keep to: nothing is
// placed where there is no room.
class Player {
 public:
  explicit Player(std::uint64_t seed) : rng_(seed) {
    Tenant tenant;
    tenant.id = "t";
    const TenantId t = cluster.put_tenant(tenant);
    for (int i = 0; i < kNodes; ++i) cluster.put_node(node(i));
    for (int i = 0; i < 3 * kKinds; ++i) jobs_.push_back(cluster.add_job(job(i), t));
  }

  // One change, kept (without a Trial) or tentative.
  void step(Trial& trial) {
    switch (rng_.below(8)) {
      case 0:
      case 1:
      case 2:
        place(trial, rng_.chance(0.5) ? TaskState::Running : TaskState::Nominated);
        break;
      case 3:
        if (const TaskId t = any(TaskState::Running); t.valid()) trial.evict(t);
        break;
      case 4:
        if (const TaskId t = any(TaskState::Nominated); t.valid()) trial.drop(t);
        break;
      case 5:
        spare(trial);
        break;
      case 6:
        hold(trial);
        break;
      case 7:
        start(trial);
        break;
    }
  }

  // A task that was told to stop has gone.
  void finish_some() {
    while (rng_.chance(0.6))
      if (const TaskId t = any(TaskState::Releasing); t.valid()) cluster.remove_task(t);
  }

  Rng& rng() { return rng_; }
  Cluster cluster;

 private:
  static Node node(int number) {
    Node node;
    node.name = "n" + std::to_string(number);
    node.capacity.cpu_milli = 1'000'000;
    node.capacity.named = {{"pods", 1'000}};
    for (int i = 0; i < kGpus; ++i) {
      Gpu gpu;
      gpu.index = i;
      gpu.model = "A100-SXM4-40GB";
      gpu.memory_mib = 40'960;
      gpu.mig_enabled = gpu.mig_dynamic = number == 0;
      node.gpus.push_back(gpu);
    }
    return node;
  }

  static Job job(int number) {
    Job job;
    job.id = "j" + std::to_string(number);
    job.tenant = "t";
    job.preemptible = number % 2 == 0;
    Group group;
    group.count = kTasks;
    GpuRequest& gpu = group.request.gpu;
    switch (number % kKinds) {
      case kWhole:
        gpu.count = 1 + number / kKinds;
        break;
      case kShared:
        gpu.count = 1;
        gpu.sharing = Sharing::Shared;
        gpu.milli = 300 + 100 * (number / kKinds);
        break;
      case kPinned:
        gpu.count = 1;
        gpu.pinned_ids = {number % kGpus};
        group.request.only_nodes = {"n1"};
        break;
      default:
        gpu.sharing = Sharing::Mig;
        gpu.mig = {{number / kKinds == 0 ? "1g.5gb" : "2g.10gb", 1}};
        break;
    }
    group.request.resources.cpu_milli = 100;
    group.request.resources.named = {{"pods", 1}};
    job.groups.push_back(group);
    return job;
  }

  TaskId any(TaskState state) {
    std::vector<TaskId> found;
    for (const JobId job_id : jobs_)
      for (const TaskId t : cluster.job(job_id).tasks)
        if (cluster.task(t).state == state) found.push_back(t);
    return found.empty() ? TaskId{} : found[rng_.below(found.size())];
  }

  void place(Trial& trial, TaskState state) {
    const JobId job_id = jobs_[rng_.below(jobs_.size())];
    const auto missing = cluster.missing_ranks(job_id, 0);
    if (missing.empty()) return;
    const auto where = room(job_id, state == TaskState::Running ? View::Now : View::Future);
    if (!where) return;
    trial.place(job_id, 0, missing[rng_.below(missing.size())], *where, state, Instant{1});
  }

  std::optional<Allocation> room(JobId job_id, View view) {
    const Shape& shape = cluster.shapes().at(cluster.shape_of(job_id).groups[0].shape);
    const GpuRequest& gpu = shape.request.gpu;
    if (gpu.sharing == Sharing::Mig) return cut(shape);
    const NodeId id{gpu.pinned_ids.empty() ? 1 + rng_.below(kNodes - 1) : 1};
    const NodeState& n = cluster.node(id);
    if (!gpu.pinned_ids.empty()) {
      const int pin = gpu.pinned_ids[0];
      const GpuState& books = n.gpus[static_cast<std::size_t>(pin)];
      const bool ours =
          books.pin_owner == PinOwner(shape, job_id) &&
          (view == View::Future || (books.milli.used == 0 && books.pin_releasing == 0));
      if (!ours && (n.free_gpus(view) & gpu_bit(pin)) == 0) return std::nullopt;
      return Allocation{id, gpu_bit(pin), {}};
    }
    GpuMask chosen = 0;
    for_each_gpu(n.usable(), [&](int i) {
      const GpuState& books = n.gpus[static_cast<std::size_t>(i)];
      const bool fits = shape.exclusive()
                            ? (n.free_gpus(view) & gpu_bit(i)) != 0
                            : books.pin_tasks == 0 && books.milli.free(view) >= gpu.milli;
      if (fits && gpu_count(chosen) < gpu.count) chosen |= gpu_bit(i);
    });
    if (gpu_count(chosen) < gpu.count) return std::nullopt;
    return Allocation{id, chosen, {}};
  }

  std::optional<Allocation> cut(const Shape& shape) {
    const int gpu = static_cast<int>(rng_.below(kGpus));
    const MigProfile* profile =
        find_mig_profile("A100-SXM4-40GB", 40'960, shape.request.gpu.mig[0].profile);
    const MigGpuState& state = *cluster.node(NodeId{0}).mig_gpu(gpu);
    const int start = static_cast<int>(rng_.below(8));
    if ((profile->starts >> start & 1) == 0) return std::nullopt;
    for (const MigSlotState& i : state.instances)
      if ((i.used || i.nominated) &&
          (mig_slots(i.start, i.size) & mig_slots(start, profile->size)) != 0)
        return std::nullopt;
    return Allocation{
        NodeId{0},
        0,
        {MigPick{static_cast<std::uint8_t>(gpu), static_cast<std::int8_t>(start),
                 static_cast<std::uint8_t>(profile->size), 0, shape.mig_profiles[0], true}}};
  }

  // Only what was evicted in this Trial, and only while nobody was promised its room.
  void spare(Trial& trial) {
    std::vector<TaskId> evicted;
    for (const auto& change : trial.changes())
      if (change.kind == Trial::Kind::Released &&
          cluster.task(change.task).state == TaskState::Releasing)
        evicted.push_back(change.task);
    if (evicted.empty()) return;
    const Task& task = cluster.task(evicted[rng_.below(evicted.size())]);
    for (const TaskId other : cluster.node(task.place.node).tasks)
      if (cluster.task(other).state == TaskState::Nominated) return;
    for (const int rank : cluster.missing_ranks(task.job, 0))
      if (rank == task.rank) trial.spare(evicted_id(task));
  }
  TaskId evicted_id(const Task& task) const {
    for (const TaskId id : cluster.job(task.job).tasks)
      if (&cluster.task(id) == &task) return id;
    return {};
  }

  void hold(Trial& trial) {
    for (const auto& change : trial.changes())
      if (change.kind == Trial::Kind::Placed && cluster.task(change.task).job.valid() &&
          cluster.task(change.task).state == TaskState::Running) {
        trial.hold(change.task);
        return;
      }
  }

  void start(Trial& trial) {
    const TaskId id = any(TaskState::Nominated);
    if (!id.valid()) return;
    for (const TaskId other : cluster.node(cluster.task(id).place.node).tasks)
      if (cluster.task(other).state == TaskState::Releasing) return;
    trial.start(id);
  }

  Rng rng_;
  std::vector<JobId> jobs_;
};

TEST(Trial, undoes_any_sequence_of_changes) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Player player(seed);
    for (int round = 0; round < 12; ++round) {
      const std::uint64_t before = player.cluster.hash();
      {
        Trial trial(player.cluster);
        for (auto n = player.rng().below(20); n > 0; --n) player.step(trial);
        player.cluster.verify();
      }
      player.cluster.verify();
      ASSERT_EQ(player.cluster.hash(), before) << "seed " << seed << ", round " << round;
      Trial kept(player.cluster);  // the next round starts from other books
      for (auto n = player.rng().below(20); n > 0; --n) player.step(kept);
      (void)kept.keep();
      player.finish_some();
      player.cluster.verify();
    }
  }
}

TEST(Trial, goes_back_to_a_mark_and_on_from_there) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Player player(seed);
    Trial trial(player.cluster);
    for (int round = 0; round < 10; ++round) {
      for (auto n = player.rng().below(8); n > 0; --n) player.step(trial);
      const std::size_t mark = trial.mark();
      const std::uint64_t before = player.cluster.hash();
      for (auto n = player.rng().below(15); n > 0; --n) player.step(trial);
      trial.rollback(mark);
      ASSERT_EQ(player.cluster.hash(), before) << "seed " << seed << ", round " << round;
    }
    player.cluster.verify();
  }
}

TEST(Trial, what_is_kept_stays_and_is_returned_in_order) {
  Player player(7);
  std::uint64_t after = 0;
  {
    Trial trial(player.cluster);
    for (int n = 0; n < 30; ++n) player.step(trial);
    const std::size_t changes = trial.changes().size();
    ASSERT_GT(changes, 5U);
    EXPECT_EQ(trial.keep().size(), changes);
    after = player.cluster.hash();
  }
  EXPECT_EQ(player.cluster.hash(), after);
}

}  // namespace
}  // namespace gs
