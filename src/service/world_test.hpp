// A world for tests of the desk: rows as a store would keep them, and agents that do what they are
// told, all in memory and under a clock of the test's own.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "service/desk.hpp"

namespace gs {

// What a store keeps.
class RowsInMemory {
 public:
  void apply(const Batch& batch) {
    if (batch.empty()) return;
    EXPECT_EQ(batch.turn, turn_ + 1);
    turn_ = batch.turn;
    for (const JobRow& row : batch.added) {
      EXPECT_FALSE(jobs_.contains(row.seq)) << "a job is added twice";
      jobs_[row.seq] = row;
    }
    for (const JobRow& row : batch.changed) {
      EXPECT_TRUE(jobs_.contains(row.seq)) << "a job changes that was never added";
      jobs_[row.seq] = row;
    }
    for (const TenantRow& row : batch.tenants) tenants_[row.seq] = row;
    for (const NodeRow& row : batch.nodes) nodes_[row.node.name] = row;
    for (const std::string& name : batch.removed_nodes) nodes_.erase(name);
    for (const EventRow& row : batch.events) events_.push_back(row);
  }
  Loaded load() const {
    Loaded loaded;
    loaded.turn = turn_;
    for (const auto& [seq, row] : tenants_) loaded.tenants.push_back(row);
    for (const auto& [name, row] : nodes_) loaded.nodes.push_back(row);
    for (const auto& [seq, row] : jobs_) {
      loaded.last_seq = std::max(loaded.last_seq, seq);
      if (!is_final(row.state)) loaded.jobs.push_back(row);
    }
    for (const auto& [seq, row] : tenants_) loaded.last_seq = std::max(loaded.last_seq, seq);
    if (!events_.empty()) loaded.last_event = events_.back().id;
    return loaded;
  }
  Result<std::optional<JobRow>> find(std::int64_t seq) const {
    const auto at = jobs_.find(seq);
    return at == jobs_.end() ? std::optional<JobRow>{} : std::optional(at->second);
  }

  std::uint64_t turn_ = 0;
  std::map<std::int64_t, JobRow> jobs_;
  std::map<std::int64_t, TenantRow> tenants_;
  std::map<std::string, NodeRow> nodes_;
  std::vector<EventRow> events_;
};

struct AgentTask {
  StartOrder order;
  bool running = true;
  TaskReport end;  // once it does not run
  bool stop_asked = false;
};

struct AgentInMemory {
  NodeRow row;
  std::map<std::string, AgentTask> tasks;  // by allocation
  bool connected = true;
};

class DeskWorld {
 public:
  explicit DeskWorld(DeskOptions options = usual_options()) : options_(std::move(options)) {
    restart();
  }

  static DeskOptions usual_options() {
    DeskOptions options;
    options.config.refuse_never = false;
    return options;
  }

  // The desk dies and starts over from the rows.
  void restart() {
    desk_ = std::make_unique<Desk>(options_, [this](std::int64_t seq) { return rows_.find(seq); });
    desk_->load(rows_.load(), now_);
  }

  std::string add_tenant(std::int64_t gpus = 1000) {
    TenantSpec spec;
    spec.name = "team";
    spec.max_gpus = gpus;
    spec.max_gpu_memory_mb = spec.max_cpu_cores = spec.max_memory_mb = 1'000'000;
    spec.max_concurrent_jobs = 1000;
    desk_->begin(now_);
    Result<TenantRow> row = desk_->create_tenant(spec);
    EXPECT_TRUE(row.ok());
    turn(false);
    return tenant_id(row->seq);
  }

  void add_agent(const std::string& name, int gpus) {
    NodeRow row;
    row.node.name = name;
    row.address = name + ".example";
    row.node.capacity = {64'000, 512LL * 1024 * kMiB, {}};
    for (int i = 0; i < gpus; ++i) {
      Gpu gpu;
      gpu.index = i;
      gpu.uuid = name + "-gpu-" + std::to_string(i);
      gpu.model = "H100";
      gpu.memory_mib = 80'000;
      row.node.gpus.push_back(gpu);
    }
    agents_[name].row = row;
    register_agent(name);
  }

  void register_agent(const std::string& name) {
    AgentInMemory& agent = agents_.at(name);
    agent.connected = true;
    std::vector<TaskReport> tasks;
    for (const auto& [allocation, task] : agent.tasks) tasks.push_back(report(allocation, task));
    desk_->begin(now_);
    Status registered = desk_->registered(agent.row, tasks);
    EXPECT_TRUE(registered.ok()) << (registered.ok() ? "" : registered.error().message);
    turn();
  }

  static TaskReport report(const std::string& allocation, const AgentTask& task) {
    TaskReport out = task.end;
    out.allocation = allocation;
    if (task.running) out.state = TaskReport::State::Running;
    out.gpus = task.order.process.gpus;
    return out;
  }

  static JobSpec spec(const std::string& tenant, int gpus, int priority = 100) {
    JobSpec spec;
    spec.tenant_id = tenant;
    spec.name = "job";
    spec.gpu_count = gpus;
    spec.priority = priority;
    spec.command = {"true"};
    return spec;
  }

  std::int64_t submit(const JobSpec& spec) {
    desk_->begin(now_);
    Result<std::int64_t> seq = desk_->submit(spec);
    EXPECT_TRUE(seq.ok()) << (seq.ok() ? "" : seq.error().message);
    turn();
    return seq.ok() ? *seq : 0;
  }

  // Ends a turn: cycle, commit, orders to the agents that are connected.
  void turn(bool cycle = true) {
    desk_->begin(now_);
    if (cycle) desk_->cycle();
    TurnResult result = desk_->take();
    rows_.apply(result.batch);
    for (const Outgoing& outgoing : result.orders) obey(outgoing);
    desk_->engine().verify();
    check();
  }

  // Everything agents have to tell, until nothing new comes out of it.
  void report_all() {
    for (int round = 0; round < 10; ++round) {
      desk_->begin(now_);
      for (auto& [name, agent] : agents_) {
        if (!agent.connected) continue;
        const auto tasks = agent.tasks;  // orders may change them meanwhile
        for (const auto& [allocation, task] : tasks)
          desk_->reported(name, report(allocation, task));
      }
      turn();
    }
  }

  void finish(const std::string& allocation, int exit_code, int signal = 0) {
    for (auto& [name, agent] : agents_) {
      const auto at = agent.tasks.find(allocation);
      if (at == agent.tasks.end()) continue;
      at->second.running = false;
      at->second.end.state = TaskReport::State::Exited;
      at->second.end.exit_code = exit_code;
      at->second.end.signal = signal;
    }
    report_all();
  }

  void advance(Duration by) { now_ = now_ + by; }
  void heartbeats() {
    desk_->begin(now_);
    for (auto& [name, agent] : agents_)
      if (agent.connected && !desk_->heartbeat(name, {})) {
        turn();
        register_agent(name);
      }
    turn();
  }

  const JobRow& row(std::int64_t seq) { return rows_.jobs_.at(seq); }
  RunState state(std::int64_t seq) { return row(seq).state; }
  std::vector<std::string> running() const {
    std::vector<std::string> out;
    for (const auto& [name, agent] : agents_)
      for (const auto& [allocation, task] : agent.tasks)
        if (task.running) out.push_back(allocation);
    return out;
  }
  AgentTask* task(const std::string& allocation) {
    for (auto& [name, agent] : agents_)
      if (const auto at = agent.tasks.find(allocation); at != agent.tasks.end()) return &at->second;
    return nullptr;
  }

  // What must never be: a GPU under two processes, two attempts of a job at once.
  void check() const {
    std::set<std::string> gpus;
    std::map<std::string, int> attempts;
    for (const auto& [name, agent] : agents_)
      for (const auto& [allocation, task] : agent.tasks) {
        if (!task.running) continue;
        for (const int gpu : task.order.process.gpus)
          EXPECT_TRUE(gpus.insert(name + ":" + std::to_string(gpu)).second)
              << "GPU " << gpu << " of " << name << " runs two processes";
        const auto [at, first] = attempts.emplace(task.order.job, task.order.attempt);
        EXPECT_TRUE(first || at->second == task.order.attempt)
            << task.order.job << " runs in two attempts at once";
      }
  }

  bool graceful = true;  // tasks end as soon as they are told to
  Instant now_{1'000'000};
  DeskOptions options_;
  RowsInMemory rows_;
  std::map<std::string, AgentInMemory> agents_;
  std::unique_ptr<Desk> desk_;

 private:
  void obey(const Outgoing& outgoing) {
    const auto at = agents_.find(outgoing.node);
    if (at == agents_.end() || !at->second.connected) return;
    AgentInMemory& agent = at->second;
    if (const auto* start = std::get_if<StartOrder>(&outgoing.order)) {
      AgentTask task;
      task.order = *start;
      agent.tasks.emplace(start->process.allocation, std::move(task));  // doing it twice is once
    } else if (const auto* stop = std::get_if<StopOrder>(&outgoing.order)) {
      const auto task = agent.tasks.find(stop->allocation);
      if (task == agent.tasks.end() || !task->second.running) return;
      task->second.stop_asked = true;
      if (graceful) end_stopped(task->second);
    } else {
      agent.tasks.erase(std::get<ForgetOrder>(outgoing.order).allocation);
    }
  }

 public:
  static void end_stopped(AgentTask& task) {
    task.running = false;
    task.end.state = TaskReport::State::Exited;
    task.end.signal = 15;
    task.end.stopped = true;
  }
};

}  // namespace gs
