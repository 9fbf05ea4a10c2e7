// Cluster: the one truth in memory about what runs where, for whom, and what is left.
//
// Facts (a node appeared, a task ended) change it directly, through the engine. Decisions change it
// only inside a Trial (trial.hpp), which undoes itself unless it is kept.
//
// Invariants (verify() checks all of them from scratch):
//   - a node's ledgers equal the sum over its tasks; no GPU milli, memory or MIG instance is
//     used by two tasks beyond its capacity;
//   - a tenant's usage equals the sum over Running and Nominated tasks of it and all below it;
//   - a job's counters equal the counts over its tasks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "cluster/books.hpp"
#include "cluster/domains.hpp"
#include "cluster/node_state.hpp"
#include "cluster/shapes.hpp"
#include "cluster/task.hpp"
#include "model/effect.hpp"

namespace gs {

class Trial;

// What a reservation keeps free on a node, over and above what will have come free by then.
struct Hold {
  std::int64_t cpu_milli = 0, memory_bytes = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> named;
  struct Part {
    int gpu = 0;
    int milli = 0;
    std::int64_t memory_mib = 0;
  };
  std::vector<Part> parts;
  std::vector<int> mig_gpus;  // GPUs of which nobody gets an instance
};

class Cluster {
 public:
  // --- what there is ---
  const DomainTree& domains() const { return domains_; }
  void set_topology(std::vector<std::string> levels);  // re-attaches all nodes
  const ShapeTable& shapes() const { return shapes_; }
  ShapeTable& shapes() { return shapes_; }

  std::size_t node_count() const {
    return nodes_.size();
  }  // ids run below this, gone ones included
  const NodeState& node(NodeId id) const { return nodes_[id.index()]; }
  NodeId find_node(const std::string& name) const;

  // GPUs of the largest group of a job that is known now (a task without GPUs counts as one).
  std::int64_t largest_gang() const { return gangs_.empty() ? 1 : gangs_.rbegin()->first; }

  std::size_t job_count() const { return jobs_.size(); }
  const JobRecord& job(JobId id) const { return jobs_[id.index()]; }
  JobRecord& job(JobId id) { return jobs_[id.index()]; }
  JobId find_job(const std::string& id) const;
  const JobShape& shape_of(JobId id) const { return shapes_.at(job(id).shape); }

  std::size_t tenant_count() const { return tenants_.size(); }
  const TenantRecord& tenant(TenantId id) const { return tenants_[id.index()]; }
  TenantRecord& tenant(TenantId id) { return tenants_[id.index()]; }
  TenantId find_tenant(const std::string& id) const;
  const std::vector<TenantId>& top_tenants() const { return top_tenants_; }

  const Task& task(TaskId id) const { return tasks_[id.index()]; }
  const Shape& shape_of(const Task& task) const {
    return shapes_.at(shapes_.at(job(task.job).shape).groups[task.group].shape);
  }
  // What a task counts for in its tenant's books, on the devices that it has.
  Usage usage(const Task& task) const;
  // Ranks of a group that have neither a Running nor a Nominated task, ascending.
  std::vector<int> missing_ranks(JobId job, int group) const;
  // Whether a task of this rank has been told to stop and has not gone yet.
  bool is_leaving(JobId job, int group, int rank) const;
  // Everything usable, for shares: healthy whole GPUs of nodes that are ready and not cordoned.
  const Usage& total() const;
  std::int64_t smallest_gpu_memory_mib() const { return total(), smallest_gpu_memory_mib_; }
  std::int64_t largest_gpu_memory_mib() const { return total(), largest_gpu_memory_mib_; }

  // --- facts ---
  // Tasks whose devices this report takes away or exchanges for others, by job and rank. They must
  // be gone before put_node().
  std::vector<TaskId> displaced_by(const Node& spec) const;
  NodeId put_node(const Node& spec);  // new or changed; tasks on it stay as they are
  void remove_node(NodeId id);        // its tasks must be gone
  void set_ready(NodeId id, bool ready);
  void set_cordoned(NodeId id, bool cordoned);
  struct Heat {
    int temperature_c = 0;
    bool hot = false, warm = false;
  };
  void set_gpu(NodeId id, int gpu, Health health, Heat heat);
  void set_performance(NodeId id, double performance);
  TenantId put_tenant(const Tenant& spec);
  void remove_tenant(TenantId id);
  JobId add_job(const Job& job, TenantId tenant);
  Job job_value(JobId id)
      const;  // the Job as it was submitted (priority, arrivals and holds as they are now)
  void set_next_seq(std::uint64_t seq) { next_seq_ = seq; }
  std::uint64_t next_seq() const { return next_seq_; }
  void set_hot(NodeId id, GpuMask hot);
  void set_mig(NodeId id, const std::vector<MigPlace>& instances);  // all that there are, unused
  void forget_job(JobId id);  // final and without tasks: frees the record for reuse
  void set_job_shape(JobId id, const Job& job);  // groups changed while it holds nothing

  TaskId place(JobId job, int group, int rank, Allocation place, TaskState state, Instant now);
  void set_task_state(TaskId id, TaskState state);
  void set_started(TaskId id);
  void remove_task(TaskId id);
  // Capacity kept for a reservation while others are placed: counts as nominated, for nobody.
  // Every hold is taken back (sign -1) before the cycle's phase ends.
  void hold(NodeId id, const Hold& hold, int sign);

  // --- change log of nodes: readers keep a position and catch up ---
  std::uint64_t log_end() const { return log_base_ + log_.size(); }
  std::uint64_t log_begin() const { return log_base_; }
  NodeId logged(std::uint64_t position) const { return log_[position - log_base_]; }
  std::uint64_t spec_version() const { return spec_version_; }  // what nodes are or may be used for
  std::uint64_t structure_version() const { return structure_version_; }  // nodes came, went, moved

  void verify() const;  // aborts where an invariant does not hold
  std::uint64_t hash() const;

 private:
  friend class Trial;
  void touch(NodeId id);
  void count_gang(JobShapeId shape, int sign);
  void charge_tenants(const Task& task, int sign);
  void count_job(const Task& task, int sign);
  const Layout* intern(const Layout& layout);
  void apply_spec(NodeState& node, const Node& spec);
  void restore_task(TaskId id, Task task);
  void find_pin_owners(NodeState& node, GpuMask gpus);
  void insert_task(TaskId id);

  DomainTree domains_;
  ShapeTable shapes_;
  std::deque<Layout> layouts_;  // stable addresses
  std::vector<NodeState> nodes_;
  std::unordered_map<std::string, NodeId> node_by_name_;
  std::vector<JobRecord> jobs_;
  std::vector<JobId> free_jobs_;
  std::map<std::int64_t, int> gangs_;  // jobs by the GPUs of their largest group
  std::unordered_map<std::string, JobId> job_by_id_;
  std::uint64_t next_seq_ = 1;
  std::vector<TenantRecord> tenants_;
  std::unordered_map<std::string, TenantId> tenant_by_id_;
  std::vector<TenantId> top_tenants_;
  std::vector<Task> tasks_;
  std::vector<TaskId> free_tasks_;
  std::vector<NodeId> log_;
  std::uint64_t log_base_ = 0;
  std::uint64_t spec_version_ = 1;
  std::uint64_t structure_version_ = 1;
  mutable Usage total_;  // of when total_stale_ was last false
  mutable std::int64_t smallest_gpu_memory_mib_ = 0;
  mutable std::int64_t largest_gpu_memory_mib_ = 0;
  mutable bool total_stale_ = true;
};

}  // namespace gs
