// For tests: a scheduler that speaks the agents' protocol and does what a test tells it, an agent
// as a process of its own, and directories that vanish.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <agent.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace gs::agent {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class FakeScheduler final : public ::agent::AgentService::Service {
 public:
  explicit FakeScheduler(std::int64_t lease_ms) : lease_ms_(lease_ms) { start(); }
  ~FakeScheduler() override { stop(); }

  void start();  // on the port of before, if there was one
  void stop();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void acknowledge(bool yes);
  void command(const std::string& text);  // in the next answer to a heartbeat

  // Waits until the agent has its stream of orders open, then sends.
  void send(const ::agent::JobAssignmentResponse& order);

  // Each waits, and fails the test when it takes too long.
  ::agent::TaskReport report_of(const std::string& id, const std::string& state);
  ::agent::RegisterAgentRequest registration(std::size_t number);  // 0: the first
  ::agent::HeartbeatRequest heartbeat(
      const std::function<bool(const ::agent::HeartbeatRequest&)>& wanted);
  ::agent::ReportMetricsRequest metrics(
      const std::function<bool(const ::agent::ReportMetricsRequest&)>& wanted);
  std::string log_text(const std::string& request_id, bool to_the_end, const std::string& holds);
  int reports_of(const std::string& id) const;
  std::string authorization() const;
  std::size_t largest_chunk() const;

 private:
  using OrderStream =
      grpc::ServerReaderWriter<::agent::JobAssignmentResponse, ::agent::JobAssignmentRequest>;
  grpc::Status RegisterAgent(grpc::ServerContext* context,
                             const ::agent::RegisterAgentRequest* request,
                             ::agent::RegisterAgentResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         grpc::ServerReaderWriter<::agent::HeartbeatResponse,
                                                  ::agent::HeartbeatRequest>* stream) override;
  grpc::Status ReportMetrics(grpc::ServerContext* context,
                             const ::agent::ReportMetricsRequest* request,
                             ::agent::ReportMetricsResponse* response) override;
  grpc::Status ReceiveJobAssignment(grpc::ServerContext* context, OrderStream* stream) override;
  bool wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until);

  std::int64_t lease_ms_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool acknowledge_ = true;
  std::vector<std::string> commands_;
  std::string authorization_;
  OrderStream* orders_ = nullptr;
  std::vector<::agent::RegisterAgentRequest> registrations_;
  std::vector<::agent::HeartbeatRequest> heartbeats_;
  std::vector<::agent::ReportMetricsRequest> metrics_;
  std::vector<::agent::TaskReport> reports_;
  std::map<std::string, std::string> logs_;
  std::map<std::string, bool> log_ended_;
  std::size_t largest_chunk_ = 0;
};

// `gpu-scheduler agent ...`
class AgentProcess {
 public:
  ~AgentProcess();
  void start(const std::vector<std::string>& arguments);
  void kill_hard();
  int terminate();  // politely; its exit code
  int wait();
  int pid() const { return pid_; }

 private:
  int pid_ = 0;
};

// A scheduler, an agent with simulated GPUs, and nothing left of them afterwards.
class AgentTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  void start_agent(const std::vector<std::string>& more = {});
  // START of a shell script, with an id that no other test uses.
  ::agent::JobAssignmentResponse script(const std::string& name, const std::string& text) const;
  std::string id(const std::string& name) const;
  std::string task_dir(const std::string& name) const;
  void send_stop(const std::string& name, std::int64_t grace_ms);
  void read_log(const std::string& name, const std::string& request_id, bool follow,
                std::int64_t tail_lines = 0, std::int64_t offset = 0);

  std::int64_t lease_ms_ = 60'000;
  TemporaryDirectory directory_;
  std::unique_ptr<FakeScheduler> scheduler_;
  AgentProcess agent_;
};

bool process_exists(std::int64_t pid);                    // zombies don't count
bool eventually(const std::function<bool()>& condition);  // within a time that only bugs need

}  // namespace gs::agent
