// Binder: leases first, then volumes, then Bindings. It carries out what the desk has ordered and
// tells what came of it; each order gets exactly one answer, also when the API server does not.
//
// Everything happens on the Api's loop. What it does not know (an answer was lost) it looks up: a
// Binding that was done counts as done. See docs/adr/0010 for why no GPU is given twice.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/orders.hpp"
#include "wire/kube/lease.hpp"

namespace gs::kube {

// The GPUs on which a pod needs leases, and what it takes of each.
std::map<int, GpuHolder> shares_of(const PodPlace& place);

struct BinderOptions {
  bool leases = true;
  std::string lease_namespace = "gpu-scheduler";
  std::string identity;  // of this scheduler: tells our leases from those of another
};

class Binder {
 public:
  using Done = std::function<void(BindDone)>;
  // A lease turned out not to be there (any more).
  using LeaseGone = std::function<void(const std::string& name)>;
  using Clock = std::function<Instant()>;

  Binder(Api& api, BinderOptions options, Clock clock, Done done, LeaseGone lease_gone);
  ~Binder();  // what is under way is answered to nobody
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  void bind(Bind order);
  void release(Release order);
  void break_lease(Break order);
  void evict(Evict order);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
