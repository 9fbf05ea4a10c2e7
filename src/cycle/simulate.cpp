#include "cycle/simulate.hpp"

#include <algorithm>
#include <unordered_map>

#include "cycle/attempt.hpp"
#include "queue/order_tree.hpp"

namespace gs {
namespace {

std::uint64_t member_key(JobId job, int group, int rank) {
  return std::uint64_t{job.v} << 32 | static_cast<std::uint64_t>(group) << 20 |
         static_cast<std::uint64_t>(rank);
}

}  // namespace

bool Simulation::run(Trial& trial, const Ask& ask) {
  evicted_.clear();
  needed_.clear();
  back_.clear();
  hopeless_.clear();
  lost_.clear();
  moved_ = 0;
  victims_ = ask.victims;
  evict(trial, ask);
  if (!serve(trial, ask)) return false;
  spare_needless_moves(trial, ask);
  take_stock(ask);
  return true;
}

void Simulation::evict(Trial& trial, const Ask& ask) {
  for (const VictimTask& task : ask.victims) {
    if (task.nominated) {
      trial.drop(task.id);
      // If it was to move there, the task that it replaces still leaves; it may move elsewhere.
      for (const TaskId id : context_.cluster.job(task.job).tasks) {
        const Task& old = context_.cluster.task(id);
        if (old.group == task.group && old.rank == task.rank) evicted_.set(id);
      }
      continue;
    }
    trial.evict(task.id);
    evicted_.set(task.id);
  }
}

bool Simulation::serve(Trial& trial, const Ask& ask) {
  const Cluster& cluster = context_.cluster;
  const TenantOrder tenants(cluster, context_.shares, context_.config.tier_step);
  OrderTree order(cluster, tenants, OrderTree::Way::Serve);
  const double aging = context_.config.aging_per_hour;
  Amounts asked{};
  for (const Member& member : ask.members)
    asked = asked + amounts(usage_of(cluster.shapes().at(shape_of(cluster, ask.job, member.group)),
                                     cluster.smallest_gpu_memory_mib()));
  order.add({ask.job, job_key(cluster, ask.job, aging), asked, 0});
  std::unordered_set<JobId> queued{ask.job};
  for (const VictimTask& task : ask.victims)
    if (queued.insert(task.job).second)
      order.add({task.job, job_key(cluster, task.job, aging),
                 next_amounts(cluster, task.job, &evicted_), 0});
  const auto place_job = [&] {
    return attempt(context_, trial, ask.job, ask.members, Firmness::Nominate, ask.among).placed;
  };
  if (ask.job_first && !place_job()) return false;
  while (!order.empty()) {
    const JobId job = order.pop().job;
    if (job == ask.job) {
      if (!ask.job_first && !place_job()) return false;
    } else if (!come_back(trial, ask, job) && ask.nobody_lost) {
      return false;
    }
  }
  return true;
}

bool Simulation::come_back(Trial& trial, const Ask& ask, JobId job) {
  const JobRecord& record = context_.cluster.job(job);
  const bool fresh = record.active_tasks == 0;
  const std::uint64_t kind = std::uint64_t{record.tenant.v} << 32 | record.shape.v;
  // Room only shrinks while others come back: what its twin did not find, it does not find either.
  if (fresh && hopeless_.count(kind) > 0) return false;
  const std::vector<Member> members = next_members(context_.cluster, job, &evicted_);
  if (!attempt(context_, trial, job, members, Firmness::Nominate, ask.among).placed) {
    if (fresh) hopeless_.insert(kind);
    return false;
  }
  for (const Member& m : members) back_.insert(member_key(job, m.group, m.rank));
  return true;
}

namespace {

bool in_balance(const Ledger& ledger) { return ledger.free(View::Future) >= 0; }

// A pinned device is for the tasks of one job.
bool only_one_job_on(const Cluster& cluster, const NodeState& node, int gpu) {
  JobId owner;
  for (const TaskId id : node.tasks) {
    const Task& task = cluster.task(id);
    if (task.state == TaskState::Releasing || (task.place.gpus & gpu_bit(gpu)) == 0) continue;
    if (owner.valid() && task.job != owner) return false;
    owner = task.job;
  }
  return true;
}

// Whether everybody who is to be on this task's node and devices has room there.
bool is_sound(const Cluster& cluster, const Task& task) {
  const NodeState& node = cluster.node(task.place.node);
  bool sound = in_balance(node.cpu_milli) && in_balance(node.memory_bytes);
  for (const Ledger& named : node.named) sound &= in_balance(named);
  for_each_gpu(task.place.gpus, [&](int gpu) {
    const GpuState& books = node.gpus[static_cast<std::size_t>(gpu)];
    sound &= in_balance(books.milli) && in_balance(books.memory_mib);
    if (books.pinned(View::Future)) sound &= only_one_job_on(cluster, node, gpu);
  });
  for (const MigPick& pick : task.place.mig)
    for (const auto& gpu : node.mig)
      for (const auto& instance : gpu.instances)
        if (gpu.gpu == pick.gpu && instance.id == pick.id) sound &= !instance.nominated;
  return sound;
}

// Whether where one member lies says something about where the others may lie.
bool lies_together(const JobShape& shape) {
  const auto wishes = [](const TopologyWish& wish) {
    return !wish.required_level.empty() || !wish.preferred_level.empty();
  };
  return std::any_of(
             shape.groups.begin(), shape.groups.end(),
             [&](const ShapedGroup& g) { return wishes(g.topology) || !g.slices.empty(); }) ||
         std::any_of(shape.sets.begin(), shape.sets.end(),
                     [&](const GroupSet& s) { return wishes(s.topology); });
}

}  // namespace

void Simulation::spare_needless_moves(Trial& trial, const Ask& ask) {
  const Cluster& cluster = context_.cluster;
  std::unordered_map<std::uint64_t, TaskId> placed;
  for (const Trial::Change& change : trial.changes()) {
    if (change.kind != Trial::Kind::Placed) continue;
    const Task& task = cluster.task(change.task);
    if (task.job.valid() && task.state == TaskState::Nominated)
      placed[member_key(task.job, task.group, task.rank)] = change.task;
  }
  const auto stays = [&](const VictimTask& task) {
    const auto it = placed.find(member_key(task.job, task.group, task.rank));
    if (task.nominated || it == placed.end()) return true;
    trial.drop(it->second);
    trial.spare(task.id);
    return is_sound(cluster, cluster.task(task.id));
  };
  std::unordered_set<JobId> seen;
  for (const VictimTask& first : ask.victims) {
    const std::size_t mark = trial.mark();
    bool all = true;
    if (!lies_together(cluster.shape_of(first.job))) {
      all = stays(first);
    } else if (seen.insert(first.job).second) {
      for (const VictimTask& task : ask.victims)
        all = all && (task.job != first.job || stays(task));
    }
    if (!all) trial.rollback(mark);
  }
}

void Simulation::take_stock(const Ask& ask) {
  for (const VictimTask& task : ask.victims) {
    if (back_.count(member_key(task.job, task.group, task.rank)) == 0) {
      lost_.push_back(task);
      needed_.set(task.id);
    } else if (task.nominated || context_.cluster.task(task.id).state != TaskState::Running) {
      ++moved_;
      needed_.set(task.id);
    }
  }
}

}  // namespace gs
