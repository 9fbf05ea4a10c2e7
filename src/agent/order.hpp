// An order of the scheduler, as what the supervisor is to do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <agent.pb.h>

#include "agent/inventory.hpp"
#include "agent/options.hpp"
#include "agent/task_files.hpp"
#include "base/result.hpp"

namespace gs::agent {

// What the task is given of the machine, as its environment names it.
struct GivenDevices {
  std::vector<std::string> names;  // for CUDA_VISIBLE_DEVICES: UUIDs, or indexes where simulated
  std::vector<std::string> uuids;  // for containers; empty where simulated
  std::vector<int> gpus;           // indexes, also of those that it gets a part of
};

Result<GivenDevices> given_devices(const ::agent::JobAssignmentResponse& order, GpuSource& source,
                                   const Gpus& gpus);

std::map<std::string, std::string> task_environment(const ::agent::JobAssignmentResponse& order,
                                                    const GivenDevices& devices,
                                                    const std::string& node_id);

TaskOrder task_order(const ::agent::JobAssignmentResponse& order, const GivenDevices& devices,
                     const Options& options, const std::string& lease_file);

}  // namespace gs::agent
