// Our values as the messages of api/proto/agent.proto.
#pragma once

#include <string>
#include <vector>

#include <agent.pb.h>

#include "agent/inventory.hpp"
#include "agent/options.hpp"
#include "agent/tasks.hpp"

namespace gs::agent {

::agent::TaskReport report_message(const TaskView& task);
void fill_metrics(const GpuSample& sample, ::agent::GPUMetrics& message);
void fill_timestamp(std::int64_t ms, google::protobuf::Timestamp& message);

// All but the tasks.
::agent::RegisterAgentRequest register_message(const Options& options, const Machine& machine,
                                               const Gpus& gpus, bool simulated,
                                               const std::string& address);

}  // namespace gs::agent
