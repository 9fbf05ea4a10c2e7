// `gpu-scheduler agent --kube`: joins what the agent sees of a machine to the API server.
#pragma once

#include "agent/options.hpp"

namespace gs {

// Runs until SIGTERM; returns the exit code.
int run_kube_agent(const agent::Options& options);

}  // namespace gs
