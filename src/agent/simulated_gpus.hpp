// GPUs that are not there: for trying the scheduler out on any machine, and for tests.
#pragma once

#include <memory>
#include <string>

#include "agent/inventory.hpp"
#include "base/result.hpp"

namespace gs::agent {

// "8xH100-SXM5-80GB", or a model alone for one of it. With a file (docs/agent.md), what it says
// of single GPUs holds from the moment it is written: a test breaks a GPU by writing it.
Result<std::unique_ptr<GpuSource>> simulated_gpus(const std::string& spec, const std::string& file);

}  // namespace gs::agent
