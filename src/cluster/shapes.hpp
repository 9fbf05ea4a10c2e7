// Shapes: each distinct request once, with its names resolved. A hundred thousand waiting jobs of
// two hundred shapes need two hundred answers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "cluster/names.hpp"
#include "model/job.hpp"

namespace gs {

struct Shape {
  TaskRequest request;
  std::vector<std::uint32_t> models;                          // interned request.gpu.models
  std::vector<std::pair<std::uint32_t, std::int64_t>> named;  // interned request.resources.named
  std::vector<std::uint32_t> mig_profiles;                    // interned request.gpu.mig, one each
  std::int64_t mig_milli = 0;   // what its MIG instances count for in a tenant's books
  std::uint32_t pin_group = 0;  // interned request.gpu.pin_group, from 1; 0: none
  int gpus() const { return request.gpu.count; }
  bool exclusive() const { return request.gpu.sharing == Sharing::Exclusive; }
};

// Who shares a pinned device: the tasks of one job, or of all jobs of one pin group.
class PinOwner {
 public:
  constexpr PinOwner() = default;  // nobody
  PinOwner(const Shape& shape, JobId job)
      : who_(shape.pin_group > 0 ? -static_cast<std::int64_t>(shape.pin_group)
                                 : static_cast<std::int64_t>(job.index()) + 1) {}
  bool valid() const { return who_ != 0; }
  bool operator==(const PinOwner&) const = default;

 private:
  std::int64_t who_ = 0;
};

// A group of a job with its request interned.
struct ShapedGroup {
  std::string name;
  ShapeId shape;
  int count = 1;
  int min = 1;  // resolved: the number itself; 0: none is needed
  int set = 0;
  TopologyWish topology;
  std::vector<Slice> slices;
  bool operator==(const ShapedGroup&) const = default;
};

// The whole group structure of a job. Jobs with the same JobShape (and tenant) are twins.
struct JobShape {
  std::vector<GroupSet> sets;
  std::vector<ShapedGroup> groups;
  int tasks = 0;      // all groups together
  int min_tasks = 0;  // sum of the groups' minima
  bool elastic() const { return min_tasks < tasks; }
};

class ShapeTable {
 public:
  ShapeId intern(const TaskRequest& request);
  JobShapeId intern(const Job& job);
  const Shape& at(ShapeId id) const { return shapes_[id.index()]; }
  const JobShape& at(JobShapeId id) const { return job_shapes_[id.index()]; }
  std::size_t size() const { return shapes_.size(); }
  std::size_t job_shape_count() const { return job_shapes_.size(); }

  // What one MIG compute slice counts for in tenants' books; by default a seventh of a GPU. Holds
  // for shapes that are seen later.
  void set_mig_slice_milli(int milli) { mig_slice_milli_ = milli; }
  std::int64_t mig_milli(int slices) const {
    return mig_slice_milli_ > 0 ? std::int64_t{slices} * mig_slice_milli_
                                : std::int64_t{slices} * kWholeGpu / 7;
  }

  Names& models() { return models_; }
  const Names& models() const { return models_; }
  Names& resources() { return resources_; }
  const Names& resources() const { return resources_; }

 private:
  std::vector<Shape> shapes_;
  std::vector<JobShape> job_shapes_;
  std::unordered_multimap<std::uint64_t, ShapeId> by_hash_;
  std::unordered_multimap<std::uint64_t, JobShapeId> jobs_by_hash_;
  Names models_;
  Names resources_;
  Names pin_groups_;
  int mig_slice_milli_ = 0;  // 0: a seventh
};

}  // namespace gs
