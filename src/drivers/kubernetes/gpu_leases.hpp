// The leases of GPUs, one write at a time: taken, joined, left and broken, by optimistic locking.
//
// Everything happens on the Api's loop. Each callback comes once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drivers/kubernetes/api.hpp"
#include "wire/kube/lease.hpp"

namespace gs::kube {

// A GPU, and the pod that wants it or has it.
struct LeaseAsk {
  std::string node;
  int gpu = 0;
  std::string pod;  // namespace/name
  GpuHolder holder;

  bool shares() const { return !holder.is_alone(); }
};

struct LeaseTaking {
  bool ok = false;
  std::string taken_by;  // uid of another pod that has it
  std::string error;     // the API server could not say
  std::string lease_uid;
};

class GpuLeases {
 public:
  using Taken = std::function<void(LeaseTaking)>;
  using Left = std::function<void(bool is_gone)>;  // false: it could not be found out
  using Clock = std::function<Instant()>;

  GpuLeases(Api& api, std::string name_space, std::string identity, Clock clock);

  void take(LeaseAsk ask, Taken done);
  // `lease_uid`: of a lease that nobody shares, where that is known; then one write is enough.
  void leave(const std::string& node, int gpu, const std::string& pod_uid,
             const std::string& lease_uid, Left left);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
