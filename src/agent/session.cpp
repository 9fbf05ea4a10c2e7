#include "agent/session.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/clock.hpp"
#include "agent/lease.hpp"
#include "agent/log.hpp"
#include "agent/messages.hpp"
#include "agent/order.hpp"
#include "agent/processes.hpp"

namespace gs::agent {

Session::Session(Parts parts, std::shared_ptr<grpc::Channel> channel)
    : parts_(std::move(parts)), scheduler_(::agent::AgentService::NewStub(channel)) {
  prepare(enrol_context_);
  prepare(heartbeat_context_);
  prepare(order_context_);
  enrol_context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
}

void Session::prepare(grpc::ClientContext& context) const {
  if (!parts_.options.token.empty())
    context.AddMetadata("authorization", "Bearer " + parts_.options.token);
}

void Session::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  enrol_context_.TryCancel();
  heartbeat_context_.TryCancel();
  order_context_.TryCancel();
  parts_.outbox.close();
  wake_.notify_all();
}

void Session::heartbeat_soon() {
  {
    const std::lock_guard lock(mutex_);
    news_ = true;
  }
  wake_.notify_all();
}

bool Session::pause(std::int64_t ms) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return over_; });
  return !over_;
}

bool Session::run() {
  if (!enrol()) return false;
  heartbeats_ = scheduler_->Heartbeat(&heartbeat_context_);
  orders_ = scheduler_->ReceiveJobAssignment(&order_context_);
  logs_ = std::make_unique<LogService>(parts_.tasks, parts_.outbox);
  std::thread heartbeat_writer([this] { send_heartbeats(); });
  std::thread heartbeat_reader([this] { read_acknowledgements(); });
  std::thread report_writer([this] { send_reports(); });
  std::thread metrics_writer([this] { report_metrics(); });
  read_orders();
  end();
  for (std::thread* thread :
       {&heartbeat_writer, &heartbeat_reader, &report_writer, &metrics_writer})
    thread->join();
  logs_.reset();
  const grpc::Status status = orders_->Finish();
  const grpc::Status other = heartbeats_->Finish();
  log_info("the connection to {} is over: {}{}{}", parts_.options.server, status.error_message(),
           status.error_message().empty() ? "" : "; ", other.error_message());
  return true;
}

// The lease begins with the registration: contact is the moment before it was sent.
bool Session::enrol() {
  parts_.outbox.open();  // from here on changes are sent; those before are in the list of tasks
  gpus_ = parts_.source.list();
  ::agent::RegisterAgentRequest request =
      register_message(parts_.options, machine_under(parts_.options.sysfs_root), gpus_,
                       parts_.source.simulated(), parts_.address);
  for (const TaskView& task : parts_.tasks.all()) *request.add_tasks() = report_message(task);
  ::agent::RegisterAgentResponse response;
  contact_ms_ = boottime_ms();
  const grpc::Status status = scheduler_->RegisterAgent(&enrol_context_, request, &response);
  if (!status.ok() || !response.success()) {
    log_warning("cannot register with {}: {}", parts_.options.server,
                status.ok() ? response.message() : status.error_message());
    return false;
  }
  lease_ms_ = response.lease_ms();
  if (response.heartbeat_ms() > 0) heartbeat_ms_ = response.heartbeat_ms();
  if (parts_.options.heartbeat_ms > 0) heartbeat_ms_ = parts_.options.heartbeat_ms;
  if (Status written = write_lease(parts_.lease_file, {contact_ms_, lease_ms_}); !written.ok())
    log_warning("{}", written.error().message);
  log_info("registered with {} as {}: {} GPU(s), {} task(s); heartbeat {} ms, lease {} ms",
           parts_.options.server, parts_.options.node_id, gpus_.entries.size(),
           request.tasks_size(), heartbeat_ms_, lease_ms_);
  return true;
}

void Session::send_heartbeats() {
  MachineLoad load;
  for (std::uint64_t sequence = 1;; ++sequence) {
    ::agent::HeartbeatRequest beat;
    beat.set_node_id(parts_.options.node_id);
    beat.set_instance_id(parts_.options.instance_id);
    beat.set_sequence(sequence);
    fill_timestamp(wall_ms(), *beat.mutable_timestamp());
    for (const GpuSample& sample : parts_.sampler.latest())
      fill_metrics(sample, *beat.add_gpu_metrics());
    beat.set_cpu_utilization(load.cpu_percent());
    beat.set_memory_utilization(MachineLoad::memory_percent());
    beat.set_active_jobs(parts_.tasks.running());
    {
      const std::lock_guard lock(mutex_);
      sent_[sequence] = boottime_ms();
    }
    if (!heartbeats_->Write(beat)) break;
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(heartbeat_ms_),
                   [this] { return over_ || news_; });
    if (over_) break;
    news_ = false;
  }
  end();
}

void Session::read_acknowledgements() {
  ::agent::HeartbeatResponse answer;
  while (heartbeats_->Read(&answer)) {
    if (answer.acknowledged()) touch(answer.sequence());
    for (const std::string& command : answer.commands()) {
      if (command != "register") continue;
      log_info("the scheduler asks us to register anew");
      end();
    }
  }
  end();
}

void Session::touch(std::uint64_t sequence) {
  Lease lease;
  {
    const std::lock_guard lock(mutex_);
    const auto beat = sent_.find(sequence);
    if (beat == sent_.end()) return;
    contact_ms_ = std::max(contact_ms_, beat->second);
    sent_.erase(sent_.begin(), std::next(beat));
    lease = {contact_ms_, lease_ms_};
  }
  if (Status written = write_lease(parts_.lease_file, lease); !written.ok())
    log_warning("{}", written.error().message);
}

void Session::send_reports() {
  ::agent::JobAssignmentRequest hello;
  hello.set_node_id(parts_.options.node_id);
  hello.set_instance_id(parts_.options.instance_id);
  hello.set_status("ready");
  bool connected = orders_->Write(hello);
  while (connected) {
    std::optional<Outbox::Item> item = parts_.outbox.next();
    if (!item) break;
    ::agent::JobAssignmentRequest message;
    message.set_node_id(parts_.options.node_id);
    if (auto* chunk = std::get_if<::agent::LogChunk>(&*item)) {
      *message.mutable_log() = std::move(*chunk);
    } else {
      const auto task = parts_.tasks.view(std::get<std::string>(*item));
      if (!task || task->status.state.empty()) continue;  // its supervisor has not spoken yet
      *message.add_reports() = report_message(*task);
    }
    connected = orders_->Write(message);
  }
  end();
}

void Session::read_orders() {
  ::agent::JobAssignmentResponse order;
  while (orders_->Read(&order)) obey(order);
}

void Session::obey(const ::agent::JobAssignmentResponse& order) {
  switch (order.order()) {
    case ::agent::START:
      return start_task(order);
    case ::agent::STOP: {
      const std::int64_t grace = order.grace_ms() > 0 ? order.grace_ms() : parts_.options.grace_ms;
      return parts_.tasks.stop(order.allocation_id(), order.job_id(), grace);
    }
    case ::agent::FORGET:
      return parts_.tasks.forget(order.allocation_id());
    case ::agent::READ_LOG:
      return logs_->take(order.allocation_id(), order.log_request());
    case ::agent::REFRESH:
      parts_.source.forget_errors();
      return end();
    default:
      log_warning("an order of a kind that this agent does not know: {}",
                  static_cast<int>(order.order()));
  }
}

void Session::start_task(const ::agent::JobAssignmentResponse& order) {
  if (parts_.tasks.view(order.allocation_id())) {
    parts_.outbox.report(order.allocation_id());
    return;
  }
  const Result<GivenDevices> devices = given_devices(order, parts_.source, gpus_);
  TaskOrder task = task_order(order, devices.ok() ? *devices : GivenDevices{}, parts_.options,
                              parts_.lease_file);
  if (devices.ok())
    parts_.tasks.start(std::move(task));
  else
    parts_.tasks.refuse(task, devices.error().message);
}

// Also the watch over a connection that is silently dead: no answer for three heartbeats.
void Session::report_metrics() {
  const std::int64_t silence_ms = std::max<std::int64_t>(3 * heartbeat_ms_, 3000);
  std::int64_t next_ms = boottime_ms() + parts_.options.metrics_ms;
  while (pause(std::min<std::int64_t>(heartbeat_ms_, 500))) {
    std::int64_t contact_ms = 0;
    {
      const std::lock_guard lock(mutex_);
      contact_ms = contact_ms_;
    }
    if (boottime_ms() - contact_ms > silence_ms) {
      log_warning("no answer from {} for {} ms", parts_.options.server, silence_ms);
      break;
    }
    if (parts_.options.metrics_ms <= 0 || boottime_ms() < next_ms) continue;
    next_ms = boottime_ms() + parts_.options.metrics_ms;
    send_metrics();
  }
  end();
}

}  // namespace gs::agent
