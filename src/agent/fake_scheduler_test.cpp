#include "agent/fake_scheduler_test.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files.hpp"
#include "agent/processes.hpp"
#include "agent/task_files.hpp"

namespace gs::agent {
namespace {

constexpr std::chrono::seconds kPatience{30};

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = std::filesystem::temp_directory_path().string() + "/gpu-agent-XXXXXX";
  if (::mkdtemp(name.data()) != nullptr) path_ = name;
  ::chmod(path_.c_str(), 0711);
}
TemporaryDirectory::~TemporaryDirectory() { remove_tree(path_); }

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

bool process_exists(std::int64_t pid) {
  for (const Process& process : all_processes())
    if (process.pid == pid) return process.state != 'Z';
  return false;
}

// ---------------------------------------------------------------- the scheduler

void FakeScheduler::start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
}

void FakeScheduler::stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeScheduler::acknowledge(bool yes) {
  const std::lock_guard lock(mutex_);
  acknowledge_ = yes;
}

void FakeScheduler::command(const std::string& text) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(text);
}

bool FakeScheduler::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until) {
  return changed_.wait_for(lock, kPatience, until);
}

void FakeScheduler::send(const ::agent::JobAssignmentResponse& order) {
  std::unique_lock lock(mutex_);
  ASSERT_TRUE(wait(lock, [this] { return orders_ != nullptr; })) << "the agent never connected";
  orders_->Write(order);
}

::agent::TaskReport FakeScheduler::report_of(const std::string& id, const std::string& state) {
  std::unique_lock lock(mutex_);
  ::agent::TaskReport found;
  const bool came = wait(lock, [&] {
    for (const ::agent::TaskReport& report : reports_)
      if (report.allocation_id() == id && report.state() == state) {
        found = report;
        return true;
      }
    return false;
  });
  std::string known;
  for (const ::agent::TaskReport& report : reports_) known += report.ShortDebugString() + "\n";
  EXPECT_TRUE(came) << id << " was never reported " << state << ", but\n" << known;
  return found;
}

::agent::RegisterAgentRequest FakeScheduler::registration(std::size_t number) {
  std::unique_lock lock(mutex_);
  const bool came = wait(lock, [&] { return registrations_.size() > number; });
  EXPECT_TRUE(came) << "no registration " << number;
  return came ? registrations_[number] : ::agent::RegisterAgentRequest{};
}

::agent::HeartbeatRequest FakeScheduler::heartbeat(
    const std::function<bool(const ::agent::HeartbeatRequest&)>& wanted) {
  std::unique_lock lock(mutex_);
  heartbeats_.clear();
  ::agent::HeartbeatRequest found;
  EXPECT_TRUE(wait(lock, [&] {
    for (const auto& beat : heartbeats_)
      if (wanted(beat)) {
        found = beat;
        return true;
      }
    return false;
  }));
  return found;
}

::agent::ReportMetricsRequest FakeScheduler::metrics(
    const std::function<bool(const ::agent::ReportMetricsRequest&)>& wanted) {
  std::unique_lock lock(mutex_);
  ::agent::ReportMetricsRequest found;
  EXPECT_TRUE(wait(lock, [&] {
    for (const auto& request : metrics_)
      if (wanted(request)) {
        found = request;
        return true;
      }
    return false;
  }));
  return found;
}

std::string FakeScheduler::log_text(const std::string& request_id, bool to_the_end,
                                    const std::string& holds) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(wait(lock,
                   [&] {
                     return logs_[request_id].find(holds) != std::string::npos &&
                            (!to_the_end || log_ended_[request_id]);
                   }))
      << "so far: " << logs_[request_id];
  return logs_[request_id];
}

int FakeScheduler::reports_of(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const ::agent::TaskReport& report : reports_) count += report.allocation_id() == id ? 1 : 0;
  return count;
}

std::string FakeScheduler::authorization() const {
  const std::lock_guard lock(mutex_);
  return authorization_;
}

std::size_t FakeScheduler::largest_chunk() const {
  const std::lock_guard lock(mutex_);
  return largest_chunk_;
}

grpc::Status FakeScheduler::RegisterAgent(grpc::ServerContext* context,
                                          const ::agent::RegisterAgentRequest* request,
                                          ::agent::RegisterAgentResponse* response) {
  const std::lock_guard lock(mutex_);
  const auto header = context->client_metadata().find("authorization");
  if (header != context->client_metadata().end())
    authorization_.assign(header->second.data(), header->second.size());
  registrations_.push_back(*request);
  for (const ::agent::TaskReport& task : request->tasks()) reports_.push_back(task);
  response->set_success(true);
  response->set_lease_ms(lease_ms_);
  response->set_heartbeat_ms(50);
  changed_.notify_all();
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::Heartbeat(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<::agent::HeartbeatResponse, ::agent::HeartbeatRequest>* stream) {
  ::agent::HeartbeatRequest beat;
  while (stream->Read(&beat)) {
    ::agent::HeartbeatResponse answer;
    {
      const std::lock_guard lock(mutex_);
      heartbeats_.push_back(beat);
      changed_.notify_all();
      if (!acknowledge_) continue;
      answer.set_acknowledged(true);
      answer.set_sequence(beat.sequence());
      for (const std::string& text : commands_) answer.add_commands(text);
      commands_.clear();
    }
    stream->Write(answer);
  }
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::ReportMetrics(grpc::ServerContext*,
                                          const ::agent::ReportMetricsRequest* request,
                                          ::agent::ReportMetricsResponse* response) {
  const std::lock_guard lock(mutex_);
  metrics_.push_back(*request);
  response->set_success(true);
  changed_.notify_all();
  return grpc::Status::OK;
}

grpc::Status FakeScheduler::ReceiveJobAssignment(grpc::ServerContext*, OrderStream* stream) {
  ::agent::JobAssignmentRequest message;
  while (stream->Read(&message)) {
    const std::lock_guard lock(mutex_);
    orders_ = stream;
    for (const ::agent::TaskReport& report : message.reports()) reports_.push_back(report);
    if (message.has_log()) {
      const ::agent::LogChunk& chunk = message.log();
      logs_[chunk.request_id()] += chunk.data() + chunk.error();
      log_ended_[chunk.request_id()] |= chunk.end();
      largest_chunk_ = std::max(largest_chunk_, chunk.data().size());
    }
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (orders_ == stream) orders_ = nullptr;
  return grpc::Status::OK;
}

// ---------------------------------------------------------------- the agent

void AgentProcess::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"gpu-scheduler", "agent"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  ASSERT_EQ(::posix_spawn(&pid, GPU_SCHEDULER_BINARY, nullptr, nullptr, pointers.data(), ::environ),
            0);
  pid_ = pid;
}

int AgentProcess::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void AgentProcess::kill_hard() {
  ASSERT_GT(pid_, 1);
  ::kill(pid_, SIGKILL);
  wait();
}

int AgentProcess::terminate() {
  if (pid_ <= 1) return -1;
  ::kill(pid_, SIGTERM);
  return wait();
}

AgentProcess::~AgentProcess() {
  if (pid_ > 0) kill_hard();
}

// ---------------------------------------------------------------- both

void AgentTest::SetUp() { scheduler_ = std::make_unique<FakeScheduler>(lease_ms_); }

void AgentTest::start_agent(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--server",    scheduler_->address(),
                                     "--state-dir", directory_.path() + "/state",
                                     "--node-id",   "node-1",
                                     "--simulate",  "4xH100-SXM5-80GB",
                                     "--grace-ms",  "500"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  agent_.start(arguments);
}

void AgentTest::TearDown() {
  if (agent_.pid() > 0) {
    EXPECT_EQ(agent_.terminate(), 0);
  }
  const std::string tasks = directory_.path() + "/state/tasks";
  for (const std::string& name : list_directory(tasks)) {
    const std::string task = tasks + "/" + name;
    EXPECT_TRUE(replace_file(stop_path(task), "0", Durability::Later).ok());
    EXPECT_TRUE(eventually([&] { return try_lock(lock_path(task)).has_value(); }))
        << task << " is still supervised";
  }
}

std::string AgentTest::id(const std::string& name) const {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->name()) + "-" + name + "-" + std::to_string(::getpid());
}

std::string AgentTest::task_dir(const std::string& name) const {
  return directory_.path() + "/state/tasks/" + file_name_for(id(name));
}

::agent::JobAssignmentResponse AgentTest::script(const std::string& name,
                                                 const std::string& text) const {
  ::agent::JobAssignmentResponse order;
  order.set_order(::agent::START);
  order.set_allocation_id(id(name));
  order.set_job_id("job-" + name);
  order.set_tenant_id("team");
  order.set_script(text);
  order.set_attempt(1);
  return order;
}

void AgentTest::send_stop(const std::string& name, std::int64_t grace_ms) {
  ::agent::JobAssignmentResponse order;
  order.set_order(::agent::STOP);
  order.set_allocation_id(id(name));
  order.set_job_id("job-" + name);
  order.set_grace_ms(grace_ms);
  scheduler_->send(order);
}

void AgentTest::read_log(const std::string& name, const std::string& request_id, bool follow,
                         std::int64_t tail_lines, std::int64_t offset) {
  ::agent::JobAssignmentResponse order;
  order.set_order(::agent::READ_LOG);
  order.set_allocation_id(id(name));
  order.mutable_log_request()->set_request_id(request_id);
  order.mutable_log_request()->set_follow(follow);
  order.mutable_log_request()->set_tail_lines(tail_lines);
  order.mutable_log_request()->set_offset(offset);
  scheduler_->send(order);
}

}  // namespace gs::agent
