// What a pod asks for, once everything that it refers to is known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/time.hpp"
#include "model/job.hpp"

namespace gs::kube {

// A request that is read where it is kept: thousands of pods ask for the same.
class SharedRequest {
 public:
  SharedRequest() = default;
  explicit SharedRequest(TaskRequest request)
      : request_(std::make_shared<const TaskRequest>(std::move(request))) {}

  const TaskRequest& operator*() const { return request_ ? *request_ : empty(); }
  const TaskRequest* operator->() const { return &**this; }
  bool operator==(const SharedRequest& other) const {
    return request_ == other.request_ || **this == *other;
  }

 private:
  static const TaskRequest& empty() {
    static const TaskRequest nothing;
    return nothing;
  }
  std::shared_ptr<const TaskRequest> request_;
};

struct PodAsk {
  SharedRequest request;
  std::string tenant;
  int priority = 0;  // the engine's
  bool may_preempt = true;
  std::optional<Duration> expected_runtime;  // nullopt: nobody knows
  std::string gang;                          // "namespace/name"; empty: the pod goes by itself
  int gang_size = 0;
  std::string gang_owner;  // uid of what makes the gang's pods; empty: nothing does
  TopologyWish topology;   // of the whole gang
  int index = -1;     // among its siblings: completion index, ordinal, line of its map; -1: none
  std::string claim;  // name of its GpuClaim; empty: none
  // Why it can't be placed yet: something that it refers to is missing or wrong.
  std::string waits_for;
  std::string reason;  // one word for that: "ClaimMissing"

  bool operator==(const PodAsk&) const = default;
};

}  // namespace gs::kube
