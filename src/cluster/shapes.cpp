#include "cluster/shapes.hpp"

#include "base/hash.hpp"
#include "model/mig.hpp"

namespace gs {
namespace {

// Only a spread of what usually differs; equality decides.
std::uint64_t hash_of(const TaskRequest& r) {
  Hash h;
  h.add(static_cast<std::uint64_t>(r.gpu.count)).add(static_cast<std::uint64_t>(r.gpu.milli));
  h.add(static_cast<std::uint64_t>(r.gpu.memory_mib))
      .add(static_cast<std::uint64_t>(r.gpu.sharing));
  h.add(static_cast<std::uint64_t>(r.resources.cpu_milli));
  h.add(static_cast<std::uint64_t>(r.resources.memory_bytes));
  for (const auto& model : r.gpu.models) h.add(model);
  for (const auto& ask : r.gpu.mig) h.add(ask.profile).add(static_cast<std::uint64_t>(ask.count));
  for (const auto& [key, value] : r.selector) h.add(key).add(value);
  for (const auto& node : r.only_nodes) h.add(node);
  for (const int id : r.gpu.pinned_ids) h.add(static_cast<std::uint64_t>(id));
  h.add(r.gpu.pin_group);
  return h.value();
}

}  // namespace

ShapeId ShapeTable::intern(const TaskRequest& request) {
  const std::uint64_t hash = hash_of(request);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (at(it->second).request == request) return it->second;
  Shape shape{request, {}, {}, {}, 0, 0};
  for (const auto& model : request.gpu.models) shape.models.push_back(models_.intern(model));
  for (const auto& [name, amount] : request.resources.named)
    shape.named.emplace_back(resources_.intern(name), amount);
  for (const auto& ask : request.gpu.mig)
    shape.mig_profiles.push_back(resources_.intern("mig:" + ask.profile));
  for (const auto& ask : request.gpu.mig)
    shape.mig_milli += mig_milli(ask.count * mig_compute_slices(ask.profile));
  if (!request.gpu.pin_group.empty())
    shape.pin_group = pin_groups_.intern(request.gpu.pin_group) + 1;
  const ShapeId id{shapes_.size()};
  shapes_.push_back(std::move(shape));
  by_hash_.emplace(hash, id);
  return id;
}

JobShapeId ShapeTable::intern(const Job& job) {
  JobShape shape;
  shape.sets = job.sets;
  Hash h;
  for (const auto& group : job.groups) {
    const ShapeId id = intern(group.request);
    shape.groups.push_back(
        {group.name, id, group.count, group.min_count(), group.set, group.topology, group.slices});
    shape.tasks += group.count;
    shape.min_tasks += group.min_count();
    h.add(id.v)
        .add(static_cast<std::uint64_t>(group.count))
        .add(group.name)
        .add(group.topology.required_level);
  }
  const auto [begin, end] = jobs_by_hash_.equal_range(h.value());
  for (auto it = begin; it != end; ++it) {
    const JobShape& known = at(it->second);
    if (known.groups == shape.groups && known.sets == shape.sets) return it->second;
  }
  const JobShapeId id{job_shapes_.size()};
  job_shapes_.push_back(std::move(shape));
  jobs_by_hash_.emplace(h.value(), id);
  return id;
}

}  // namespace gs
