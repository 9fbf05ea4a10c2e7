#include "drivers/agents/messages.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace gs {
namespace {

agent::RegisterAgentRequest registration(std::int64_t memory_mb) {
  agent::RegisterAgentRequest request;
  request.set_node_id("n1");
  request.set_total_cpu_cores(8);
  request.set_total_memory_mb(memory_mb);
  return request;
}

TEST(AgentMessages, AMachineHasAsMuchMemoryAsCanBeCounted) {
  ASSERT_TRUE(node_of(registration(1024)).ok());
  EXPECT_EQ(node_of(registration(1024))->node.capacity.memory_bytes, 1024LL << 20);
  for (const std::int64_t wrong : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max() / 4})
    EXPECT_NE(node_of(registration(wrong)).error().message.find("total_memory_mb must be from 0"),
              std::string::npos);
}

TEST(AgentMessages, LongWordsAreCutBetweenCharacters) {
  agent::TaskReport report;
  report.set_message(std::string(999, 'x') + "\u00e9\u00e9");
  EXPECT_EQ(report_of(report).message, std::string(999, 'x'));
  report.set_message(std::string(998, 'x') + "\u00e9\u00e9");
  EXPECT_EQ(report_of(report).message, std::string(998, 'x') + "\u00e9");
  report.set_message("short \u00e9");
  EXPECT_EQ(report_of(report).message, "short \u00e9");
}

TEST(AgentMessages, ATemperatureThatIsNoNumberIsNone) {
  agent::HeartbeatRequest heartbeat;
  for (const double celsius : {std::numeric_limits<double>::quiet_NaN(), 61.4, 1e9})
    heartbeat.add_gpu_metrics()->set_temperature(celsius);
  const NodeReport report = report_of(heartbeat);
  EXPECT_EQ(report.gpus[0].temperature_c, 0);
  EXPECT_EQ(report.gpus[1].temperature_c, 61);
  EXPECT_EQ(report.gpus[2].temperature_c, 500);
}

TEST(AgentMessages, AnEndInTheFutureIsNow) {
  agent::TaskReport report;
  report.set_state("exited");
  report.set_ended_ms_ago(-5);
  EXPECT_EQ(report_of(report).ended_ago, Duration{});
  report.set_ended_ms_ago(5'000);
  EXPECT_EQ(report_of(report).ended_ago, seconds(5));
}

}  // namespace
}  // namespace gs
