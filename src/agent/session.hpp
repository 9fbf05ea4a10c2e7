// One registration with the scheduler and the streams that follow it, until one of them breaks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <agent.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "agent/inventory.hpp"
#include "agent/log_service.hpp"
#include "agent/options.hpp"
#include "agent/outbox.hpp"
#include "agent/sampler.hpp"
#include "agent/tasks.hpp"

namespace gs::agent {

// What a session works with; all of it outlives the session.
struct Parts {
  const Options& options;
  GpuSource& source;
  Sampler& sampler;
  Tasks& tasks;
  Outbox& outbox;
  std::string lease_file;
  std::string address;
};

class Session {
 public:
  Session(Parts parts, std::shared_ptr<grpc::Channel> channel);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns when the connection is over. True: the scheduler had accepted us.
  bool run();
  void end();             // from any thread
  void heartbeat_soon();  // from any thread: there is news

 private:
  using HeartbeatStream =
      grpc::ClientReaderWriter<::agent::HeartbeatRequest, ::agent::HeartbeatResponse>;
  using OrderStream =
      grpc::ClientReaderWriter<::agent::JobAssignmentRequest, ::agent::JobAssignmentResponse>;

  void prepare(grpc::ClientContext& context) const;
  bool enrol();
  void send_heartbeats();
  void read_acknowledgements();
  void touch(std::uint64_t sequence);
  void send_reports();
  void read_orders();
  void obey(const ::agent::JobAssignmentResponse& order);
  void start_task(const ::agent::JobAssignmentResponse& order);
  void report_metrics();
  void send_metrics();
  bool pause(std::int64_t ms);  // false: the session is over

  Parts parts_;
  std::unique_ptr<::agent::AgentService::Stub> scheduler_;
  Gpus gpus_;
  std::int64_t lease_ms_ = 0, heartbeat_ms_ = 1000;
  grpc::ClientContext enrol_context_, heartbeat_context_, order_context_;
  std::unique_ptr<HeartbeatStream> heartbeats_;
  std::unique_ptr<OrderStream> orders_;
  std::unique_ptr<LogService> logs_;
  std::map<std::string, std::int64_t> cpu_before_ms_;  // of each task, when last looked at
  std::int64_t metrics_before_ms_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;                           // guarded by mutex_
  bool news_ = false;                           // guarded by mutex_
  std::map<std::uint64_t, std::int64_t> sent_;  // heartbeats without answer, and when they were
                                                // sent; guarded by mutex_
  std::int64_t contact_ms_ = 0;                 // guarded by mutex_
};

}  // namespace gs::agent
