// Victims: who can be asked to leave, in which order, and in which units.
//
// The order is that of serving, turned round: tenants that are best off first; inside a tenant the
// lowest priority, surplus before what a job can't run without, the cheapest loss (work since the
// start that is not checkpointed, more for those evicted before), the youngest. Before all of
// these, whoever has only promises, or was started by this very cycle: nobody was told yet. A job
// that is above its minimum loses one task at a time; at its minimum it leaves as a whole.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "cycle/cycle.hpp"
#include "queue/members.hpp"
#include "queue/order_tree.hpp"

namespace gs {

struct VictimTask {
  TaskId id;
  JobId job;
  int group = 0;
  int rank = 0;
  NodeId node;
  Amounts amounts{};
  std::shared_ptr<const Task> promise;  // what it was nominated for; null: it runs
};

// Tasks that leave together, last to leave first.
struct Unit {
  JobId job;
  std::vector<VictimTask> tasks;
};

// Jobs that may be evicted at all, collected once per phase.
class VictimPool {
 public:
  explicit VictimPool(CycleContext& context) : context_(context) {}

  // In the order in which they are taken.
  const std::vector<JobId>& of(TenantId tenant);
  const std::vector<TenantId>& tenants();
  JobKey key(JobId job, const TaskMarks* taken) const;
  CycleContext& context() { return context_; }
  // A plan was kept that evicted somebody of this job.
  void changed(JobId job);

 private:
  bool may_leave(JobId job) const;
  void collect();
  void sort(TenantId tenant);

  CycleContext& context_;
  bool collected_ = false;
  std::vector<TenantId> tenants_;
  std::unordered_map<TenantId, std::vector<JobId>> jobs_;
  std::set<TenantId> stale_;
  std::unordered_map<JobId, int> fresh_;  // tasks that this cycle has started
};

// The units in order; produced as they are asked for, and kept for the next walk.
class UnitStream {
 public:
  struct Ask {
    JobId for_job;
    std::function<bool(TenantId)> from;  // tenants that may lose
    int below_priority = std::numeric_limits<int>::max();
    bool only_movable = false;
  };
  UnitStream(VictimPool& pool, const Ask& ask);

  // Null behind the last one. Pointers stay valid.
  const Unit* at(std::size_t i);

 private:
  void add_next_of(std::size_t source);
  void add(JobId job, std::uint32_t tag);
  bool eligible(JobId job) const;
  std::vector<TaskId> unit_of(JobId job) const;

  struct Source {
    const std::vector<JobId>* jobs;
    std::size_t next = 0;
  };
  VictimPool& pool_;
  Ask ask_;
  std::set<EvictionOrder::Seq> untouchable_;  // the job was evicted for these
  TenantOrder tenants_;
  OrderTree tree_;
  std::vector<Source> sources_;
  TaskMarks taken_;
  std::unordered_map<JobId, int> shrunk_;
  std::vector<std::unique_ptr<Unit>> units_;
};

}  // namespace gs
