// Nodes: agents register, are heard of, fall silent, come back; and are drained by people.
#include <algorithm>

#include "service/desk.hpp"

namespace gs {
namespace {

std::set<int> held_by_strays(const NodeStatus& node) {
  std::set<int> held;
  for (const auto& [allocation, gpus] : node.strays)
    for (const int gpu : gpus)
      if (gpu >= 0 && gpu < static_cast<int>(node.row.node.gpus.size())) held.insert(gpu);
  return held;
}

bool meets_a_stray(const NodeStatus& node, const Process& process) {
  const std::set<int> held = held_by_strays(node);
  std::vector<int> used = process.gpus;
  for (const MigPlace& place : process.mig) used.push_back(place.gpu);
  return std::any_of(used.begin(), used.end(), [&](int gpu) { return held.contains(gpu); });
}

bool are_two(const std::string& one, const std::string& other) {
  return !one.empty() && !other.empty() && one != other;
}

}  // namespace

Status Desk::put_node(NodeStatus& node) {
  Node spec = node.row.node;
  spec.ready = node.online;
  spec.cordoned = node.row.cordoned;
  for (const int gpu : held_by_strays(node))
    if (Health& health = spec.gpus[static_cast<std::size_t>(gpu)].health; health == Health::Healthy)
      health = Health::Unknown;  // nothing new goes there
  // A network path that does not match the configured levels says nothing that we could use.
  if (spec.domain.size() != options_.topology.size()) spec.domain.clear();
  Status told = tell(PutNode{std::move(spec)});
  node.in_engine = node.in_engine || told.ok();
  return told;
}

std::vector<std::string> Desk::allocations_on(const std::string& node) const {
  std::vector<std::string> found;
  for (const auto& [allocation, seq] : allocations_)
    for (const Process& process : jobs_.at(seq).processes)
      if (process.allocation == allocation && process.node == node) found.push_back(allocation);
  std::sort(found.begin(), found.end());  // the order of a hash table must not be seen
  return found;
}

// Whether a device that a process holds is gone or another one now.
bool Desk::takes_devices_away(const Node& before, const Node& after) const {
  for (const std::string& allocation : allocations_on(before.name))
    for (const Process& process : jobs_.at(allocations_.at(allocation)).processes) {
      if (process.allocation != allocation) continue;
      std::vector<int> used = process.gpus;
      for (const MigPlace& place : process.mig) used.push_back(place.gpu);
      for (const int gpu : used) {
        const auto i = static_cast<std::size_t>(gpu);
        if (i >= after.gpus.size() || i >= before.gpus.size() ||
            after.gpus[i].uuid != before.gpus[i].uuid)
          return true;
      }
    }
  return false;
}

// Two agents of one name: what the first runs is unknown to the second, so letting the second in
// would start it twice. It has to wait until the first is silent and nothing of it can run.
Status Desk::refuse_impostor(const NodeStatus& node, const std::string& instance) const {
  const std::string& name = node.row.node.name;
  if (!are_two(node.row.instance, instance)) return ok_status();
  const bool busy = !allocations_on(name).empty();
  if (!node.online && !busy) return ok_status();
  const Duration after = busy ? options_.lease + options_.lease_margin : options_.offline_after;
  return Error{ErrorCode::Conflict,
               "node " + name + " is served by another agent, at " + node.row.address +
                   ", heard of " + std::to_string((now_ - node.last_contact).ms / 1000) +
                   " s ago; give this one a --node-id of its own, or stop the other: this one " +
                   "takes over after " + std::to_string(after.ms / 1000) + " s of silence"};
}

Status Desk::registered(NodeRow row, const std::vector<TaskReport>& tasks) {
  if (Status s = validate(row.node); !s) return s;
  const std::string name = row.node.name;
  const auto known = nodes_.find(name);
  if (known != nodes_.end())
    if (Status s = refuse_impostor(known->second, row.instance); !s) return s;
  const std::string instance = row.instance;
  NodeStatus node = known == nodes_.end() ? NodeStatus{} : known->second;
  const bool is_new = known == nodes_.end();
  node.stale = !is_new && takes_devices_away(node.row.node, row.node);
  row.cordoned = node.row.cordoned;
  row.draining = node.row.draining;
  row.registered = is_new ? now_ : node.row.registered;
  if (node.stale) {
    // The old devices stay in the books until what ran on them is certainly gone.
    for (std::size_t i = 0; i < node.row.node.gpus.size(); ++i)
      if (i >= row.node.gpus.size() || row.node.gpus[i].uuid != node.row.node.gpus[i].uuid)
        node.row.node.gpus[i].health = Health::Unhealthy;
  } else {
    node.row = std::move(row);
  }
  node.row.instance = instance;
  const bool was_online = node.online;
  node.online = true;
  node.last_contact = now_;
  note_strays(node, tasks);
  if (Status s = put_node(node); !s) return s;
  nodes_[name] = std::move(node);
  touched_nodes_.insert(name);
  ++reports_;
  if (!was_online)
    event(is_new ? "node.registered" : "node.online", nullptr, name,
          "node " + name + " is there with " + std::to_string(nodes_[name].row.node.gpus.size()) +
              " GPUs");
  settle();
  reconcile(name, tasks);
  return ok_status();
}

// ---------------------------------------------------------------- what nobody knows

bool Desk::knows(const std::string& node, const std::string& allocation) const {
  const auto job = allocations_.find(allocation);
  if (job == allocations_.end()) return false;
  const std::vector<Process>& processes = jobs_.at(job->second).processes;
  return std::any_of(processes.begin(), processes.end(), [&](const Process& process) {
    return process.allocation == allocation && process.node == node;
  });
}

void Desk::note_strays(NodeStatus& node, const std::vector<TaskReport>& tasks) {
  const auto before = std::exchange(node.strays, {});
  for (const TaskReport& report : tasks) {
    if (report.state != TaskReport::State::Running || knows(node.row.node.name, report.allocation))
      continue;
    if (before.contains(report.allocation))
      node.strays[report.allocation] = report.gpus;
    else
      add_stray(node, report);
  }
}

void Desk::add_stray(NodeStatus& node, const TaskReport& report) {
  const std::string& name = node.row.node.name;
  node.strays[report.allocation] = report.gpus;
  event("node.stray", nullptr, name,
        "node " + name + " runs " + report.allocation +
            ", which is not known here; it is stopped, and keeps its GPUs until it has gone");
}

void Desk::stop_stray(const std::string& name, const TaskReport& report) {
  const auto node = nodes_.find(name);
  if (node != nodes_.end() && !node->second.strays.contains(report.allocation)) {
    add_stray(node->second, report);
    if (node->second.in_engine) (void)put_node(node->second);
  }
  orders_.push_back({name, StopOrder{report.allocation, Duration{}, "is not known any more"}});
}

void Desk::release_stray(const std::string& name, const std::string& allocation) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end() || node->second.strays.erase(allocation) == 0) return;
  if (node->second.in_engine) (void)put_node(node->second);
}

// What the agent knows of and what we know of become the same.
void Desk::reconcile(const std::string& node, const std::vector<TaskReport>& tasks) {
  for (const std::string& allocation : allocations_on(node)) {
    const auto job = allocations_.find(allocation);
    if (job == allocations_.end()) continue;  // has just been stopped for another reason
    LiveJob& live = jobs_.at(job->second);
    const auto process = std::find_if(live.processes.begin(), live.processes.end(),
                                      [&](const Process& p) { return p.allocation == allocation; });
    const auto report = std::find_if(tasks.begin(), tasks.end(), [&](const TaskReport& r) {
      return r.allocation == allocation;
    });
    reconcile_process(live, *process, report == tasks.end() ? nullptr : &*report);
  }
  for (const TaskReport& report : tasks) reported(node, report);
}

void Desk::reconcile_process(LiveJob& live, Process& process, const TaskReport* report) {
  const bool there = report != nullptr && report->state == TaskReport::State::Running;
  switch (process.state) {
    case ProcessState::Ended:
      break;
    case ProcessState::Assigned:
      if (report != nullptr) break;
      if (meets_a_stray(nodes_.at(process.node), process))
        report_lost(process, "node " + process.node + " runs something else on its GPUs");
      else
        orders_.push_back({process.node, start_order(live, process)});
      break;
    case ProcessState::Stopping:
      if (there) {
        orders_.push_back({process.node, StopOrder{process.allocation, options_.grace, "stop"}});
        break;
      }
      [[fallthrough]];
    case ProcessState::Running:
      // The agent has never heard of it, or has lost all it knew: it does not run there.
      if (report == nullptr)
        report_lost(process, "node " + process.node + " does not know of it any more");
      break;
  }
}

void Desk::report_lost(const Process& process, std::string why) {
  TaskReport lost;
  lost.allocation = process.allocation;
  lost.state = TaskReport::State::Exited;
  lost.stopped = process.state == ProcessState::Stopping;
  lost.lease_lost = !lost.stopped;
  lost.message = std::move(why);
  const std::string node = process.node;
  reported(node, lost);
}

Status Desk::heartbeat(const std::string& name, const NodeReport& report,
                       const std::string& instance) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end() || !it->second.in_engine || are_two(it->second.row.instance, instance))
    return not_found("node " + name + " is not registered");
  NodeStatus& node = it->second;
  if (node.stale && allocations_on(name).empty())
    return not_found("node " + name + " has other devices now: register again");
  node.last_contact = now_;
  if (!node.online) {
    node.online = true;
    if (Status s = put_node(node); !s) return s;
    event("node.online", nullptr, name, "node " + name + " is back");
  }
  node.report = report;
  ++reports_;
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.index < 0 || gpu.index >= static_cast<int>(node.row.node.gpus.size())) continue;
    Gpu& known = node.row.node.gpus[static_cast<std::size_t>(gpu.index)];
    if (known.health == gpu.health && known.temperature_c == gpu.temperature_c) continue;
    if (known.health != gpu.health)
      event("gpu.health", nullptr, name,
            "GPU " + std::to_string(gpu.index) + " of " + name + " is " +
                (gpu.health == Health::Healthy     ? "healthy again"
                 : gpu.health == Health::Unhealthy ? "unhealthy"
                                                   : "in an unknown state") +
                (gpu.last_error.empty() ? "" : ": " + gpu.last_error));
    known.health = gpu.health;
    known.temperature_c = gpu.temperature_c;
    const bool held = gpu.health == Health::Healthy && held_by_strays(node).contains(gpu.index);
    (void)tell(ReportGpu{name, gpu.index, held ? Health::Unknown : gpu.health, gpu.temperature_c});
  }
  settle();
  return ok_status();
}

void Desk::check_nodes() {
  for (auto& [name, node] : nodes_) {
    const Duration silent = now_ - node.last_contact;
    if (node.online && silent >= options_.offline_after) {
      node.online = false;
      (void)put_node(node);
      event("node.offline", nullptr, name,
            "node " + name + " has not been heard of for " + std::to_string(silent.ms / 1000) +
                " s; no new work goes there");
    }
    if (node.in_engine && !node.online && silent >= options_.lease + options_.lease_margin)
      lose_node(node);
  }
  settle();
}

// By now its agent has stopped everything: what ran there may run elsewhere.
void Desk::lose_node(NodeStatus& node) {
  const std::string& name = node.row.node.name;
  event("node.lost", nullptr, name,
        "node " + name + " is lost; what ran there is started elsewhere");
  for (const std::string& allocation : allocations_on(name)) {
    LiveJob& live = jobs_.at(allocations_.at(allocation));
    const auto at = std::find_if(live.processes.begin(), live.processes.end(),
                                 [&](const Process& p) { return p.allocation == allocation; });
    charge(live, *at, now_);
    event("job.lost", &live, name, "its node was lost");
    live.processes.erase(at);
    allocations_.erase(allocation);
    const auto there = [&](const TaskPlace& place) { return place.node == name; };
    std::erase_if(live.places, there);
    std::erase_if(live.leaving, there);
  }
  node.in_engine = false;
  node.strays.clear();
  (void)tell(RemoveNode{name});
}

Status Desk::cordon(const std::string& name, bool cordoned, bool drain) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return not_found("node " + name + " does not exist");
  NodeStatus& node = it->second;
  if (node.in_engine)
    if (Status s = tell(CordonNode{name, cordoned, drain}); !s) return s;
  node.row.cordoned = cordoned;
  node.row.draining = cordoned && drain;
  touched_nodes_.insert(name);
  event(!cordoned ? "node.undrained"
        : drain   ? "node.draining"
                  : "node.cordoned",
        nullptr, name, "node " + name + (cordoned ? " takes no new jobs" : " takes jobs again"));
  settle();
  return ok_status();
}

Status Desk::remove_node(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return not_found("node " + name + " does not exist");
  if (it->second.online)
    return Error{ErrorCode::Conflict, "node " + name + " is online; stop its agent first"};
  if (!allocations_on(name).empty())
    return Error{ErrorCode::Conflict,
                 "node " + name + " may still run jobs; they are taken away from it after " +
                     std::to_string((options_.lease + options_.lease_margin).ms / 1000) +
                     " s of silence"};
  if (it->second.in_engine) (void)tell(RemoveNode{name});
  nodes_.erase(it);
  touched_nodes_.erase(name);
  batch_.removed_nodes.push_back(name);
  event("node.removed", nullptr, name, "node " + name + " was removed");
  settle();
  return ok_status();
}

}  // namespace gs
