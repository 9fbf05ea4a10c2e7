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
    EXPECT_EQ(batch.turn, turn + 1);
    turn = batch.turn;
    for (const JobRow& row : batch.added) {
      EXPECT_FALSE(jobs.contains(row.seq)) << "a job is added twice";
      jobs[row.seq] = row;
    }
    for (const JobRow& row : batch.changed) {
      EXPECT_TRUE(jobs.contains(row.seq)) << "a job changes that was never added";
      jobs[row.seq] = row;
    }
    for (const TenantRow& row : batch.tenants) tenants[row.seq] = row;
    for (const NodeRow& row : batch.nodes) nodes[row.node.name] = row;
    for (const std::string& name : batch.removed_nodes) nodes.erase(name);
    for (const EventRow& row : batch.events) events.push_back(row);
  }
  Loaded load() const {
    Loaded loaded;
    loaded.turn = turn;
    for (const auto& [seq, row] : tenants) loaded.tenants.push_back(row);
    for (const auto& [name, row] : nodes) loaded.nodes.push_back(row);
    for (const auto& [seq, row] : jobs) {
      loaded.last_seq = std::max(loaded.last_seq, seq);
      if (!is_final(row.state)) loaded.jobs.push_back(row);
    }
    for (const auto& [seq, row] : tenants) loaded.last_seq = std::max(loaded.last_seq, seq);
    if (!events.empty()) loaded.last_event = events.back().id;
    return loaded;
  }
  Result<std::optional<JobRow>> find(std::int64_t seq) const {
    const auto at = jobs.find(seq);
    return at == jobs.end() ? std::optional<JobRow>{} : std::optional(at->second);
  }

  std::uint64_t turn = 0;
  std::map<std::int64_t, JobRow> jobs;
  std::map<std::int64_t, TenantRow> tenants;
  std::map<std::string, NodeRow> nodes;
  std::vector<EventRow> events;
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
  explicit DeskWorld(DeskOptions the_options = usual_options()) : options(std::move(the_options)) {
    restart();
  }

  static DeskOptions usual_options() {
    DeskOptions options;
    options.config.refuse_never = false;
    return options;
  }

  // The desk dies and starts over from the rows.
  void restart() {
    desk = std::make_unique<Desk>(options, [this](std::int64_t seq) { return rows.find(seq); });
    desk->load(rows.load(), now);
  }

  std::string add_tenant(std::int64_t gpus = 1000) {
    TenantSpec spec;
    spec.name = "team";
    spec.max_gpus = gpus;
    spec.max_gpu_memory_mb = spec.max_cpu_cores = spec.max_memory_mb = 1'000'000;
    spec.max_concurrent_jobs = 1000;
    desk->begin(now);
    Result<TenantRow> row = desk->create_tenant(spec);
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
    agents[name].row = row;
    register_agent(name);
  }

  void register_agent(const std::string& name) {
    AgentInMemory& agent = agents.at(name);
    agent.connected = true;
    std::vector<TaskReport> tasks;
    for (const auto& [allocation, task] : agent.tasks) tasks.push_back(report(allocation, task));
    desk->begin(now);
    Status registered = desk->registered(agent.row, tasks);
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
    desk->begin(now);
    Result<std::int64_t> seq = desk->submit(spec);
    EXPECT_TRUE(seq.ok()) << (seq.ok() ? "" : seq.error().message);
    turn();
    return seq.ok() ? *seq : 0;
  }

  // Ends a turn: cycle, commit, orders to the agents that are connected.
  void turn(bool cycle = true) {
    desk->begin(now);
    if (cycle) desk->cycle();
    TurnResult result = desk->take();
    rows.apply(result.batch);
    for (const Outgoing& outgoing : result.orders) obey(outgoing);
    desk->engine().verify();
    check();
  }

  // Everything agents have to tell, until nothing new comes out of it.
  void report_all() {
    for (int round = 0; round < 10; ++round) {
      desk->begin(now);
      for (auto& [name, agent] : agents) {
        if (!agent.connected) continue;
        const auto tasks = agent.tasks;  // orders may change them meanwhile
        for (const auto& [allocation, task] : tasks) desk->reported(name, report(allocation, task));
      }
      turn();
    }
  }

  void finish(const std::string& allocation, int exit_code, int signal = 0) {
    for (auto& [name, agent] : agents) {
      const auto at = agent.tasks.find(allocation);
      if (at == agent.tasks.end()) continue;
      at->second.running = false;
      at->second.end.state = TaskReport::State::Exited;
      at->second.end.exit_code = exit_code;
      at->second.end.signal = signal;
    }
    report_all();
  }

  void advance(Duration by) { now = now + by; }
  void heartbeats() {
    desk->begin(now);
    for (auto& [name, agent] : agents)
      if (agent.connected && !desk->heartbeat(name, {})) {
        turn();
        register_agent(name);
      }
    turn();
  }

  const JobRow& row(std::int64_t seq) { return rows.jobs.at(seq); }
  RunState state(std::int64_t seq) { return row(seq).state; }
  std::vector<std::string> running() const {
    std::vector<std::string> out;
    for (const auto& [name, agent] : agents)
      for (const auto& [allocation, task] : agent.tasks)
        if (task.running) out.push_back(allocation);
    return out;
  }
  AgentTask* task(const std::string& allocation) {
    for (auto& [name, agent] : agents)
      if (const auto at = agent.tasks.find(allocation); at != agent.tasks.end()) return &at->second;
    return nullptr;
  }

  // What must never be: a GPU under two processes, two attempts of a job at once.
  void check() const {
    std::set<std::string> gpus;
    std::map<std::string, int> attempts;
    for (const auto& [name, agent] : agents)
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
  Instant now{1'000'000};
  DeskOptions options;
  RowsInMemory rows;
  std::map<std::string, AgentInMemory> agents;
  std::unique_ptr<Desk> desk;

 private:
  void obey(const Outgoing& outgoing) {
    const auto at = agents.find(outgoing.node);
    if (at == agents.end() || !at->second.connected) return;
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
