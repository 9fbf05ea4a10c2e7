// Which devices of a node a task gets.
//
// Whole GPUs: `Best` takes the set with the highest bandwidth between its members and, among
// equals, the one that leaves the best-connected rest; ties go to the lowest ids. Answers depend
// only on the layout, the free GPUs and the request, so they are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/gpu_mask.hpp"
#include "cluster/cluster.hpp"
#include "placement/scorers.hpp"

namespace gs {

// The set for whole GPUs out of `free`; 0 if the policy or the bandwidth demand can't be met.
GpuMask choose_whole(const Layout& layout, GpuMask free, const GpuRequest& request);

// Whether all sets of the right size are legal.
inline bool any_set_will_do(const GpuRequest& request) {
  return request.policy != DevicePolicy::Contiguous && request.topology != TopologyMode::Required;
}
// Whether one set is better than another for what connects its members or how they are numbered.
inline bool sets_differ(const GpuRequest& request) {
  return request.count > 1 &&
         (request.policy == DevicePolicy::Contiguous || request.policy == DevicePolicy::Spread ||
          request.topology == TopologyMode::Required ||
          request.topology == TopologyMode::Preferred);
}
// How many tasks of this kind get their sets out of `free`, one after the other.
int whole_sets(const Layout& layout, GpuMask free, const GpuRequest& request, int at_most);

// GPUs for a task that shares, and the policy's points for them.
struct SharedPick {
  GpuMask gpus = 0;
  std::int64_t points = 0;
};
// One GPU: the one that the policy rates highest. Several, or no policy: the tightest, unless the
// request says which (ids, a device policy, links).
std::optional<SharedPick> pick_shared(const NodeState& node, const Shape& shape, View view,
                                      NodePolicy* policy);

class DeviceChooser {
 public:
  // Whose policy decides about shared GPUs; null: nobody's, the tightest is taken.
  void follow(const Scorer* scorer) { scorer_ = scorer; }
  // Devices for one task in this view, or nothing. `job` matters for pinned devices only.
  std::optional<Allocation> choose(const Cluster& cluster, NodeId node, const Shape& shape,
                                   View view, JobId job);
  // The same on books that are not the cluster's.
  std::optional<Allocation> choose(const NodeState& node, NodeId id, const Shape& shape, View view,
                                   JobId job);

 private:
  GpuMask whole(const NodeState& node, GpuMask free, const GpuRequest& request);

  struct Key {
    const Layout* layout;
    GpuMask free;
    std::uint64_t ask;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const noexcept;
  };
  std::unordered_map<Key, GpuMask, KeyHash> kept_;
  const Scorer* scorer_ = nullptr;
};

}  // namespace gs
