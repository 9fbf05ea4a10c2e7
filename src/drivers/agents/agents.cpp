#include "drivers/agents/agents.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include <agent.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "base/log.hpp"
#include "drivers/agents/messages.hpp"
#include "net/error_codes.hpp"

namespace gs {
namespace {

constexpr std::size_t kMaxOrders = 100'000;  // that wait for one agent

grpc::Status status_of(const Error& error) {
  return {static_cast<grpc::StatusCode>(outside_code(error.code).grpc), error.message};
}

// Orders for one agent, from the writer's thread to the thread of its stream. It is there from the
// registration on: what the agent is told in that very turn waits for its stream.
class OrderQueue {
 public:
  explicit OrderQueue(std::string instance) : instance_(std::move(instance)) {}
  // Whether it is for another agent of the same name.
  bool is_for_another(const std::string& instance) const {
    return !instance.empty() && !instance_.empty() && instance != instance_;
  }
  // True for the first that asks: the stream that sends what is in here.
  bool claim() { return !claimed_.exchange(true); }
  void push(agent::JobAssignmentResponse message) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || messages_.size() >= kMaxOrders) return;  // repeated when it registers
      messages_.push_back(std::move(message));
    }
    wake_.notify_one();
  }
  // False: closed.
  bool pop(agent::JobAssignmentResponse& out) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return closed_ || !messages_.empty(); });
    if (messages_.empty()) return false;
    out = std::move(messages_.front());
    messages_.pop_front();
    return true;
  }
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }

 private:
  const std::string instance_;  // of the agent
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<agent::JobAssignmentResponse> messages_;
  bool closed_ = false;
  std::atomic<bool> claimed_{false};
};

struct OpenReading {
  std::string node;
  std::function<void(LogPiece)> piece;
};

// The answer to work posted to the service, waited for by the thread of a call.
template <typename T>
class Waiting {
 public:
  void set(Result<T> result) {
    {
      const std::lock_guard lock(mutex_);
      result_ = std::move(result);
    }
    wake_.notify_all();
  }
  Result<T> get() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, std::chrono::seconds(30), [&] { return result_.has_value(); }))
      return Error{ErrorCode::Unavailable, "the scheduler does not answer"};
    return std::move(*result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Result<T>> result_;
};

LogPiece out_of_reach(const std::string& node) {
  LogPiece piece;
  piece.error = Error{ErrorCode::Unavailable, "node " + node + " is out of reach"};
  return piece;
}

}  // namespace

struct Agents::Impl final : agent::AgentService::Service {
  explicit Impl(AgentsOptions the_options) : options(the_options) {}

  AgentsOptions options;
  gs::Service* service = nullptr;
  std::function<Result<Caller>(std::string_view)> identify;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<OrderQueue>> streams;  // by node
  std::map<std::string, OpenReading> readings;
  std::uint64_t next_reading = 0;
  std::atomic<bool> stopping{false};

  grpc::Status check(const grpc::ServerContext& context);
  Status ask(std::function<Status(Desk&)> f);

  grpc::Status RegisterAgent(grpc::ServerContext* context,
                             const agent::RegisterAgentRequest* request,
                             agent::RegisterAgentResponse* response) override;
  grpc::Status Heartbeat(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<agent::HeartbeatResponse, agent::HeartbeatRequest>* stream) override;
  grpc::Status ReportMetrics(grpc::ServerContext* context,
                             const agent::ReportMetricsRequest* request,
                             agent::ReportMetricsResponse* response) override;
  grpc::Status ReceiveJobAssignment(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<agent::JobAssignmentResponse, agent::JobAssignmentRequest>* stream)
      override;

  std::shared_ptr<OrderQueue> expect(const std::string& node, const std::string& instance);
  std::shared_ptr<OrderQueue> claim(const std::string& node, const std::string& instance);
  void leave(const std::string& node, const std::shared_ptr<OrderQueue>& queue);
  void take_reports(const std::string& node, const agent::JobAssignmentRequest& request,
                    const std::shared_ptr<OrderQueue>& queue);
  void take_log(const agent::LogChunk& chunk);
  void push(const std::string& node, agent::JobAssignmentResponse message);
};

grpc::Status Agents::Impl::check(const grpc::ServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto header = metadata.find("authorization");
  const std::string value = header == metadata.end()
                                ? std::string{}
                                : std::string(header->second.data(), header->second.size());
  Result<Caller> caller = identify(value);
  if (!caller) return status_of(caller.error());
  if (Status s = may_serve_as_agent(*caller); !s) return status_of(s.error());
  return grpc::Status::OK;
}

Status Agents::Impl::ask(std::function<Status(Desk&)> f) {
  auto waiting = std::make_shared<Waiting<Done>>();
  if (!service->ask(std::move(f), [waiting](Status result) { waiting->set(std::move(result)); }))
    return Error{ErrorCode::Unavailable, "the scheduler is busy"};
  return waiting->get();
}

grpc::Status Agents::Impl::RegisterAgent(grpc::ServerContext* context,
                                         const agent::RegisterAgentRequest* request,
                                         agent::RegisterAgentResponse* response) {
  if (grpc::Status s = check(*context); !s.ok()) return s;
  Result<NodeRow> row = node_of(*request);
  if (!row) return status_of(row.error());
  std::vector<TaskReport> tasks;
  for (const auto& report : request->tasks()) tasks.push_back(report_of(report));
  Status registered = ask([this, row = *row, tasks](Desk& desk) {
    Status taken = desk.registered(row, tasks);
    if (taken)
      (void)expect(row.node.name, row.instance);  // before the orders of this turn are sent
    return taken;
  });
  if (!registered) return status_of(registered.error());
  log_info("agent registered", {{"node", request->node_id()},
                                {"gpus", request->gpus_size()},
                                {"simulated", request->simulated()},
                                {"tasks", tasks.size()}});
  response->set_success(true);
  response->set_message("registered");
  response->set_agent_id(request->node_id());
  response->set_lease_ms(options.lease.ms);
  response->set_heartbeat_ms(options.heartbeat.ms);
  return grpc::Status::OK;
}

grpc::Status Agents::Impl::Heartbeat(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<agent::HeartbeatResponse, agent::HeartbeatRequest>* stream) {
  if (grpc::Status s = check(*context); !s.ok()) return s;
  agent::HeartbeatRequest request;
  while (!stopping && stream->Read(&request)) {
    const NodeReport report = report_of(request);
    const Status taken = ask([node = request.node_id(), report, instance = request.instance_id()](
                                 Desk& desk) { return desk.heartbeat(node, report, instance); });
    agent::HeartbeatResponse response;
    response.set_sequence(request.sequence());
    response.set_acknowledged(taken.ok());
    if (!taken && taken.error().code == ErrorCode::NotFound) response.add_commands("register");
    // Whoever does not lead must not keep an agent's lease alive.
    if (!taken && taken.error().code == ErrorCode::Unavailable) return status_of(taken.error());
    if (!stream->Write(response)) break;
  }
  return grpc::Status::OK;
}

grpc::Status Agents::Impl::ReportMetrics(grpc::ServerContext* context,
                                         const agent::ReportMetricsRequest*,
                                         agent::ReportMetricsResponse* response) {
  if (grpc::Status s = check(*context); !s.ok()) return s;
  response->set_success(true);
  return grpc::Status::OK;
}

// A fresh queue for the stream that the agent is about to open; those before are over.
std::shared_ptr<OrderQueue> Agents::Impl::expect(const std::string& node,
                                                 const std::string& instance) {
  auto queue = std::make_shared<OrderQueue>(instance);
  const std::lock_guard lock(mutex);
  std::shared_ptr<OrderQueue>& slot = streams[node];
  if (slot) slot->close();
  slot = queue;
  return queue;
}

// None: another agent has registered under this name.
std::shared_ptr<OrderQueue> Agents::Impl::claim(const std::string& node,
                                                const std::string& instance) {
  {
    const std::lock_guard lock(mutex);
    const auto at = streams.find(node);
    if (at != streams.end() && at->second->is_for_another(instance)) return nullptr;
    if (at != streams.end() && at->second->claim()) return at->second;
  }
  std::shared_ptr<OrderQueue> queue = expect(node, instance);
  (void)queue->claim();
  return queue;
}

// The stream is over. Who reads logs of this node waits for nothing any more.
void Agents::Impl::leave(const std::string& node, const std::shared_ptr<OrderQueue>& queue) {
  std::vector<std::function<void(LogPiece)>> waiting;
  {
    const std::lock_guard lock(mutex);
    const auto at = streams.find(node);
    if (at == streams.end() || at->second != queue) return;
    streams.erase(at);
    for (auto reading = readings.begin(); reading != readings.end();) {
      if (reading->second.node == node) waiting.push_back(std::move(reading->second.piece));
      reading = reading->second.node == node ? readings.erase(reading) : std::next(reading);
    }
  }
  for (const auto& piece : waiting) piece(out_of_reach(node));
}

// What can't be taken now the agent tells again when it registers: its stream ends for that.
void Agents::Impl::take_reports(const std::string& node, const agent::JobAssignmentRequest& request,
                                const std::shared_ptr<OrderQueue>& queue) {
  std::vector<TaskReport> reports;
  for (const auto& report : request.reports()) reports.push_back(report_of(report));
  if (reports.empty()) return;
  const bool posted = service->ask(
      [node, reports](Desk& desk) -> Status {
        for (const TaskReport& report : reports) desk.reported(node, report);
        return ok_status();
      },
      [queue](const Status& taken) {
        if (!taken) queue->close();
      });
  if (!posted) queue->close();
}

grpc::Status Agents::Impl::ReceiveJobAssignment(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<agent::JobAssignmentResponse, agent::JobAssignmentRequest>* stream) {
  if (grpc::Status s = check(*context); !s.ok()) return s;
  agent::JobAssignmentRequest request;
  if (!stream->Read(&request)) return grpc::Status::OK;
  const std::string node = request.node_id();
  const std::shared_ptr<OrderQueue> queue = claim(node, request.instance_id());
  if (!queue) return {grpc::StatusCode::FAILED_PRECONDITION, "another agent serves node " + node};
  std::thread writer([&] {
    agent::JobAssignmentResponse message;
    while (queue->pop(message))
      if (!stream->Write(message)) break;
    context->TryCancel();
  });
  do {
    take_reports(node, request, queue);
    if (request.has_log()) take_log(request.log());
  } while (!stopping && stream->Read(&request));
  queue->close();
  writer.join();
  leave(node, queue);
  return grpc::Status::OK;
}

void Agents::Impl::push(const std::string& node, agent::JobAssignmentResponse message) {
  std::shared_ptr<OrderQueue> queue;
  {
    const std::lock_guard lock(mutex);
    const auto at = streams.find(node);
    if (at != streams.end()) queue = at->second;
  }
  if (queue) queue->push(std::move(message));
}

void Agents::Impl::take_log(const agent::LogChunk& chunk) {
  std::function<void(LogPiece)> piece;
  {
    const std::lock_guard lock(mutex);
    const auto at = readings.find(chunk.request_id());
    if (at == readings.end()) return;
    piece = at->second.piece;
    if (chunk.end() || !chunk.error().empty()) readings.erase(at);
  }
  LogPiece out{chunk.offset(), chunk.data(), chunk.end(), std::nullopt};
  if (!chunk.error().empty()) out.error = not_found(chunk.error());
  piece(std::move(out));
}

// ---------------------------------------------------------------- outside

Agents::Agents(AgentsOptions options) : impl_(std::make_unique<Impl>(options)) {}
Agents::~Agents() { stop(); }

void Agents::connect(Service& service, std::function<Result<Caller>(std::string_view)> identify) {
  impl_->service = &service;
  impl_->identify = std::move(identify);
}

grpc::Service& Agents::rpc() { return *impl_; }

void Agents::stop() {
  impl_->stopping = true;
  const std::lock_guard lock(impl_->mutex);
  for (auto& [node, queue] : impl_->streams) queue->close();
}

void Agents::send(const Outgoing& order) { impl_->push(order.node, message_of(order.order)); }

namespace {

class Reading final : public LogReading {
 public:
  explicit Reading(std::function<void()> cancel) : cancel_(std::move(cancel)) {}
  ~Reading() override { cancel_(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::function<void()> cancel_;
};

}  // namespace

std::unique_ptr<LogReading> Agents::read(const LogAsk& ask, std::function<void(LogPiece)> piece) {
  std::string id;
  bool there = false;
  {
    const std::lock_guard lock(impl_->mutex);
    id = "log-" + std::to_string(++impl_->next_reading);
    there = impl_->streams.contains(ask.node);
    if (there) impl_->readings[id] = {ask.node, piece};
  }
  if (!there) {
    piece(out_of_reach(ask.node));
    return std::make_unique<Reading>([] {});
  }
  agent::JobAssignmentResponse message;
  message.set_order(agent::READ_LOG);
  message.set_allocation_id(ask.allocation);
  auto* request = message.mutable_log_request();
  request->set_request_id(id);
  request->set_offset(ask.offset);
  request->set_tail_lines(ask.tail_lines);
  request->set_follow(ask.follow);
  impl_->push(ask.node, message);
  return std::make_unique<Reading>([impl = impl_.get(), id, message, node = ask.node]() mutable {
    {
      const std::lock_guard lock(impl->mutex);
      if (impl->readings.erase(id) == 0) return;  // it has ended by itself
    }
    message.mutable_log_request()->set_cancel(true);
    impl->push(node, message);
  });
}

}  // namespace gs
