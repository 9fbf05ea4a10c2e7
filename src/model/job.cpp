#include "model/job.hpp"

namespace gs {
namespace {

constexpr int kMaxTasks = 100'000;

Status validate_sets(const Job& job) {
  if (job.sets.empty()) return invalid("job " + job.id + ": sets must hold the job's own set");
  for (std::size_t i = 0; i < job.sets.size(); ++i) {
    const GroupSet& set = job.sets[i];
    const std::string of = "job " + job.id + ": sets[" + std::to_string(i) + "]";
    // A parent stands before its children, so the tree has no cycles.
    if (i == 0 ? set.parent != -1 : set.parent < 0 || set.parent >= static_cast<int>(i))
      return invalid(of + ".parent must name a set before it");
    if (set.min_children < 0) return invalid(of + ".min_children must not be negative");
  }
  return ok_status();
}

Status validate_slices(const Group& group, const std::string& of) {
  int outer = group.count;
  for (const Slice& slice : group.slices) {
    if (slice.level.empty()) return invalid(of + ".slices: level must not be empty");
    if (slice.size < 1) return invalid(of + ".slices: size must be at least 1");
    if (outer % slice.size != 0)
      return invalid(of + ".slices: size " + std::to_string(slice.size) + " must divide " +
                     std::to_string(outer));
    outer = slice.size;
  }
  return ok_status();
}

Status validate_group(const Job& job, std::size_t i) {
  const Group& group = job.groups[i];
  const std::string of = "job " + job.id + ": groups[" + std::to_string(i) + "]";
  if (group.count < 1 || group.count > kMaxTasks)
    return invalid(of + ".count must be 1.." + std::to_string(kMaxTasks) + ", got " +
                   std::to_string(group.count));
  if (group.min < kNoMinimum || group.min > group.count)
    return invalid(of + ".min must be -1.." + std::to_string(group.count) + ", got " +
                   std::to_string(group.min));
  if (group.set < 0 || group.set >= static_cast<int>(job.sets.size()))
    return invalid(of + ".set does not exist");
  if (Status s = validate_slices(group, of); !s) return s;
  if (Status s = validate(group.request); !s) return invalid(of + ": " + s.error().message);
  return ok_status();
}

}  // namespace

int task_count(const Job& job) {
  int tasks = 0;
  for (const Group& group : job.groups) tasks += group.count;
  return tasks;
}

Status validate(const Job& job) {
  if (job.id.empty()) return invalid("job: id must not be empty");
  if (job.tenant.empty()) return invalid("job " + job.id + ": tenant must not be empty");
  if (job.priority < 0 || job.priority > 1'000'000)
    return invalid("job " + job.id + ": priority must be 0..1000000, got " +
                   std::to_string(job.priority));
  if (job.groups.empty()) return invalid("job " + job.id + ": groups must not be empty");
  if (Status s = validate_sets(job); !s) return s;
  for (std::size_t i = 0; i < job.groups.size(); ++i)
    if (Status s = validate_group(job, i); !s) return s;
  if (task_count(job) > kMaxTasks)
    return invalid("job " + job.id + ": at most " + std::to_string(kMaxTasks) + " tasks");
  for (const auto& runtime : {job.expected_runtime, job.max_runtime, job.start_timeout})
    if (runtime && runtime->ms <= 0)
      return invalid("job " + job.id + ": runtimes and time-outs must be positive");
  if (job.min_runtime.ms < 0)
    return invalid("job " + job.id + ": min_runtime must not be negative");
  if (job.max_preemptions < 0)
    return invalid("job " + job.id + ": max_preemptions must not be negative");
  if (job.disruption_budget < 0)
    return invalid("job " + job.id + ": disruption_budget must not be negative");
  return ok_status();
}

}  // namespace gs
