// MIG instances of a real GPU: those that are there, and cutting new ones.
#pragma once

#include <string>

#include "agent/inventory.hpp"
#include "agent/nvml_api.hpp"
#include "base/result.hpp"

namespace gs::agent {

void add_mig(const nvml::Api& api, nvml::Device device, GpuEntry& entry);

// With `create`, instances that lie in the way are removed first; the driver refuses that while
// a program uses them.
Result<std::string> find_or_cut_mig(const nvml::Api& api, nvml::Device device,
                                    const std::string& profile, int start, bool create);

}  // namespace gs::agent
