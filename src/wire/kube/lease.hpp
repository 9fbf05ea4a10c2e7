// A Lease: who holds a GPU, or who leads.
//
// A GPU's lease is called gpu-{node}-{id}. Its holder is a pod's UID; where several pods share the
// GPU, the annotation gpu.scheduling/holders lists all of them with what each takes, and the
// holder is the first.
#pragma once

#include "base/result.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

struct GpuHolder {
  std::string pod_uid;
  int milli = 1000;  // of the GPU's compute
  std::int64_t memory_mib = 0;
  std::vector<std::string> mig;     // profiles of its instances on this GPU
  std::string group;                // has it together with all others of this group; empty: alone
  std::string scheduler;            // that put it there; empty: the one that made the lease
  std::int64_t gpu_memory_mib = 0;  // of the whole GPU, where its part of it counts; 0: not known
  // Nobody can join it.
  bool is_alone() const { return milli >= 1000 && mig.empty() && group.empty(); }
  bool operator==(const GpuHolder&) const = default;
};

struct Lease {
  Meta meta;
  std::string holder;
  std::int64_t duration_s = 0;
  std::optional<Instant> acquired, renewed;
  int transitions = 0;
  std::vector<GpuHolder> holders;  // of a GPU's lease
  std::string node;                // of a GPU's lease
  int gpu = -1;                    // -1: the lease is none of a GPU
};

// "gpu-node-a-0"; where that is longer than a name may be, the node's name is cut and its hash is
// put in its place.
std::string gpu_lease_name(const std::string& node, int gpu);

Result<Lease> decode_lease(std::string_view text);

// Whether a pod may share what the lease's holders have: a whole GPU inside its group only, parts
// of one until nothing is left of its compute or of its memory. How much memory the GPU has, they
// say themselves: who joins may not have seen what its agent reports.
bool may_join(const Lease& lease, const GpuHolder& newcomer);

}  // namespace gs::kube
