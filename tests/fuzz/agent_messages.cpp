// What agents send: any bytes that parse as their messages become values or errors.
#include <cstdint>

#include <agent.pb.h>

#include "drivers/agents/messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  agent::RegisterAgentRequest registration;
  if (registration.ParseFromArray(data, static_cast<int>(size)))
    if (const auto row = gs::node_of(registration)) (void)gs::validate(row->node);
  agent::HeartbeatRequest heartbeat;
  if (heartbeat.ParseFromArray(data, static_cast<int>(size))) (void)gs::report_of(heartbeat);
  agent::TaskReport report;
  if (report.ParseFromArray(data, static_cast<int>(size))) (void)gs::report_of(report);
  return 0;
}
