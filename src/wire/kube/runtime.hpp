// How long a pod runs, as far as it or what made it says so: an expected start of those that wait
// follows from it. It never ends anybody: deadlines are Kubernetes' to keep.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/kube/topology_ask.hpp"

namespace gs::kube {

// "90m", "2h30m", "1d", "3600s", and "3600", which are seconds.
Result<Duration> parse_runtime(std::string_view text);

// The annotation gpu.scheduling/expected-runtime of the pod, else of its nearest owner that has
// it; activeDeadlineSeconds of the pod and of its owners, where that is less. nullopt: nobody
// knows.
Result<std::optional<Duration>> expected_runtime(const Pod& pod, const Owners& owners);

}  // namespace gs::kube
