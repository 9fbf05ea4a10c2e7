// Nodes: agents register, are heard of, fall silent, come back; and are drained by people.
#include <algorithm>

#include "service/desk.hpp"

namespace gs {

Status Desk::put_node(NodeStatus& node) {
  Node spec = node.row.node;
  spec.ready = node.online;
  spec.cordoned = node.row.cordoned;
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

Status Desk::registered(NodeRow row, const std::vector<TaskReport>& tasks) {
  if (Status s = validate(row.node); !s) return s;
  const std::string name = row.node.name;
  const auto known = nodes_.find(name);
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
  const bool was_online = node.online;
  node.online = true;
  node.last_contact = now_;
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
      if (report == nullptr) orders_.push_back({process.node, start_order(live, process)});
      break;
    case ProcessState::Stopping:
      if (there) {
        orders_.push_back({process.node, StopOrder{process.allocation, options_.grace, "stop"}});
        break;
      }
      [[fallthrough]];
    case ProcessState::Running:
      if (report == nullptr) {
        // The agent has never heard of it, or has lost all it knew: it does not run there.
        TaskReport lost;
        lost.allocation = process.allocation;
        lost.state = TaskReport::State::Exited;
        lost.stopped = process.state == ProcessState::Stopping;
        lost.lease_lost = !lost.stopped;
        lost.message = "node " + process.node + " does not know of it any more";
        const std::string node = process.node;
        reported(node, lost);
      }
      break;
  }
}

Status Desk::heartbeat(const std::string& name, const NodeReport& report) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end() || !it->second.in_engine)
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
    (void)tell(ReportGpu{name, gpu.index, gpu.health, gpu.temperature_c});
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
    charge(live, *at);
    event("job.lost", &live, name, "its node was lost");
    live.processes.erase(at);
    allocations_.erase(allocation);
    const auto there = [&](const TaskPlace& place) { return place.node == name; };
    std::erase_if(live.places, there);
    std::erase_if(live.leaving, there);
  }
  node.in_engine = false;
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
