// The agents' protocol <-> what the service knows.
#pragma once

#include <agent.pb.h>

#include "base/result.hpp"
#include "service/fleet.hpp"
#include "service/records.hpp"

namespace gs {

Result<NodeRow> node_of(const agent::RegisterAgentRequest& request);
TaskReport report_of(const agent::TaskReport& report);
NodeReport report_of(const agent::HeartbeatRequest& request);
agent::JobAssignmentResponse message_of(const AgentOrder& order);

}  // namespace gs
