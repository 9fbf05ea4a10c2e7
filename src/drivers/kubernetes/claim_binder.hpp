// ClaimBinder: gets a volume for a claim on the node that was chosen for its pod, and waits until
// the cluster's controllers have bound the two.
//
// Everything happens on the Api's loop. Each callback comes once, and none after stop().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/orders.hpp"

namespace gs::kube {

class ClaimBinder {
 public:
  using Done = std::function<void(BindFailure, std::string message)>;

  explicit ClaimBinder(Api& api);
  ~ClaimBinder();  // as stop()
  ClaimBinder(const ClaimBinder&) = delete;
  ClaimBinder& operator=(const ClaimBinder&) = delete;

  void stop();
  void bind(const PodName& pod, const std::string& node, const VolumeChoice& choice, Done done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
