#include "sim/mirror.hpp"

#include <algorithm>

namespace gs {

bool is_final_state(const std::string& state) {
  return state == "completed" || state == "failed" || state == "cancelled";
}

void Taken::add(const Taken& other, int sign) {
  gpu_milli += sign * other.gpu_milli;
  gpu_memory_mib += sign * other.gpu_memory_mib;
  cpu_milli += sign * other.cpu_milli;
  memory_bytes += sign * other.memory_bytes;
}

// A part given in compute has that part of the memory, and the other way round.
std::pair<std::int64_t, std::int64_t> part_of(const GpuRequest& request, std::int64_t memory_mib) {
  if (request.sharing != Sharing::Shared) return {kWholeGpu, memory_mib};
  std::int64_t milli = request.milli;
  std::int64_t memory = request.memory_mib;
  if (milli == 0) milli = memory_mib == 0 ? 0 : memory * kWholeGpu / memory_mib;
  if (memory == 0) memory = milli * memory_mib / kWholeGpu;
  return {milli, memory};
}

Taken taken_by(const TaskRequest& request, const TaskPlace& place, const Node& node) {
  Taken taken;
  taken.cpu_milli = request.resources.cpu_milli;
  taken.memory_bytes = request.resources.memory_bytes;
  for (const int gpu : place.gpus) {
    const auto [milli, memory] =
        part_of(request.gpu, node.gpus[static_cast<std::size_t>(gpu)].memory_mib);
    taken.gpu_milli += milli;
    taken.gpu_memory_mib += memory;
  }
  // A seventh of the compute and an eighth of the memory for each compute slice.
  for (const MigAsk& ask : request.gpu.mig) {
    const std::int64_t slices = ask.profile[0] - '0';
    const auto first = static_cast<std::size_t>(place.mig.empty() ? 0 : place.mig[0].gpu);
    taken.gpu_milli += ask.count * slices * kWholeGpu / 7;
    taken.gpu_memory_mib += ask.count * slices * node.gpus[first].memory_mib / 8;
  }
  return taken;
}

// ---------------------------------------------------------------- looking up

MirrorJob* Mirror::find_job(const std::string& id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}
MirrorNode* Mirror::find_node(const std::string& name) {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}
MirrorTenant* Mirror::find_tenant(const std::string& id) {
  const auto it = tenants_.find(id);
  return it == tenants_.end() ? nullptr : &it->second;
}

int Mirror::level_index(const std::string& name) const {
  const auto it = std::find(levels_.begin(), levels_.end(), name);
  if (it != levels_.end()) return static_cast<int>(it - levels_.begin());
  return name == "node" ? static_cast<int>(levels_.size()) : -1;
}

std::string Mirror::domain_of(const MirrorNode& node, int level) const {
  if (level == static_cast<int>(levels_.size())) return node.spec.name;
  if (node.spec.domain.size() != levels_.size()) return {};
  std::string path;
  for (int i = 0; i <= level; ++i) path += node.spec.domain[static_cast<std::size_t>(i)] + "/";
  return path;
}

// ---------------------------------------------------------------- what is told

void Mirror::told(const Command& command, Instant now) {
  if (const auto* c = std::get_if<SetConfig>(&command)) {
    config_ = c->config;
    for (auto& [name, node] : nodes_)
      for (const Gpu& gpu : std::vector<Gpu>(node.spec.gpus))
        heat(node, gpu.index, gpu.temperature_c);
  }
  if (const auto* c = std::get_if<SetTopology>(&command)) levels_ = c->levels;
  if (const auto* c = std::get_if<PutNode>(&command)) put_node(*c);
  if (const auto* c = std::get_if<RemoveNode>(&command))
    if (MirrorNode* node = find_node(c->name); node != nullptr) {
      while (!node->tasks.empty()) erase(*node->tasks.back());
      nodes_.erase(c->name);
    }
  if (const auto* c = std::get_if<CordonNode>(&command))
    if (MirrorNode* node = find_node(c->name)) node->spec.cordoned = c->cordoned;
  if (const auto* c = std::get_if<ReportGpu>(&command))
    if (MirrorNode* node = find_node(c->node)) {
      node->spec.gpus[static_cast<std::size_t>(c->gpu)].health = c->health;
      heat(*node, c->gpu, c->temperature_c);
    }
  if (const auto* c = std::get_if<PutTenant>(&command)) {
    MirrorTenant& tenant = tenants_[c->tenant.id];
    tenant.spec = c->tenant;
    tenant.parent = find_tenant(c->tenant.parent);
    for (auto& [id, job] : jobs_) job.admitted |= !job.nominated.empty();
  }
  if (const auto* c = std::get_if<RemoveTenant>(&command)) tenants_.erase(c->id);
  if (const auto* c = std::get_if<SubmitJob>(&command)) {
    MirrorJob& job = jobs_[c->job.id];
    job.spec = c->job;
    job.tenant = find_tenant(c->job.tenant);
    job.state = c->job.held ? "held" : "waiting";
    job.submitted = job.waiting_since = now;
  }
  if (const auto* c = std::get_if<SetPriority>(&command))
    if (MirrorJob* job = find_job(c->id)) job->spec.priority = c->priority;
  if (const auto* c = std::get_if<MembersArrived>(&command))
    if (MirrorJob* job = find_job(c->id)) job->spec.arrived = c->arrived;
  if (const auto* c = std::get_if<TaskEnded>(&command)) ended(*c);
}

namespace {

bool loses_device(const TaskPlace& place, const Node& before, const Node& after) {
  std::vector<int> gpus = place.gpus;
  for (const MigPlace& mig : place.mig) gpus.push_back(mig.gpu);
  return std::any_of(gpus.begin(), gpus.end(), [&](int gpu) {
    const auto i = static_cast<std::size_t>(gpu);
    if (i >= after.gpus.size()) return true;
    const Gpu& a = before.gpus[i];
    const Gpu& b = after.gpus[i];
    return a.uuid != b.uuid || a.model != b.model || a.memory_mib != b.memory_mib ||
           a.mig_enabled != b.mig_enabled;
  });
}

}  // namespace

void Mirror::put_node(const PutNode& command) {
  MirrorNode& node = nodes_[command.node.name];
  // A task does not outlive the device that was under it.
  const std::vector<MirrorTask*> tasks = node.tasks;
  for (MirrorTask* task : tasks)
    if (loses_device(task->place, node.spec, command.node)) erase(*task);
  node.spec = command.node;
  node.hot.resize(command.node.gpus.size(), false);
  for (const Gpu& gpu : command.node.gpus) heat(node, gpu.index, gpu.temperature_c);
}

void Mirror::heat(MirrorNode& node, int gpu, int temperature_c) {
  const auto i = static_cast<std::size_t>(gpu);
  node.spec.gpus[i].temperature_c = temperature_c;
  const int cool = config_.thermal_threshold_c - config_.thermal_hysteresis_c;
  if (temperature_c >= config_.thermal_threshold_c) node.hot[i] = true;
  if (temperature_c <= cool) node.hot[i] = false;
  if (!config_.thermal_aware) node.hot[i] = false;
}

void Mirror::ended(const TaskEnded& command) {
  MirrorJob* job = find_job(command.task.job);
  if (job == nullptr) return;
  const Rank rank{command.task.group, command.task.rank};
  const auto task = job->tasks.find(rank);
  if (task == job->tasks.end()) return;
  if (command.outcome == Outcome::Succeeded) {
    job->succeeded.insert(rank);
    job->nominated.erase(rank);
  }
  erase(task->second);
}

void Mirror::erase(MirrorTask& task) {
  if (!task.stopping) charge(task, -1);
  std::erase(task.node->tasks, &task);
  task.job->tasks.erase(task.rank);
}

// ---------------------------------------------------------------- what the engine says

void Mirror::start(MirrorJob& job, const TaskPlace& place, Instant now) {
  const Rank rank{place.task.group, place.task.rank};
  MirrorNode* node = find_node(place.node);
  MirrorTask& task = job.tasks[rank];
  task = MirrorTask{rank, place, &job, node, false, now};
  node->tasks.push_back(&task);
  job.nominated.erase(rank);
  charge(task, +1);
}

void Mirror::stop(MirrorJob& job, Rank rank) {
  const auto task = job.tasks.find(rank);
  if (task == job.tasks.end() || task->second.stopping) return;
  charge(task->second, -1);
  task->second.stopping = true;
}

void Mirror::nominate(MirrorJob& job, const TaskPlace& place) {
  job.nominated[{place.task.group, place.task.rank}] = place;
}

void Mirror::changed(const JobChanged& change, Instant now) {
  MirrorJob* job = find_job(change.job);
  if (job == nullptr) return;
  job->state = change.state;
  if (change.state == "waiting") {
    job->waiting_since = now;
    job->nominated.clear();
    job->admitted = false;
  }
  if (change.state == "starting") job->started = now;
  if (is_final_state(change.state) && job->tasks.empty()) jobs_.erase(change.job);
}

void Mirror::charge(const MirrorTask& task, int sign) {
  const TaskRequest& request =
      task.job->spec.groups[static_cast<std::size_t>(task.rank.first)].request;
  const Taken taken = taken_by(request, task.place, task.node->spec);
  const bool ran = task.job->active > 0;
  task.job->active += sign;
  const bool runs = task.job->active > 0;
  int first = task.place.gpus.empty() ? -1 : task.place.gpus[0];
  if (!task.place.mig.empty()) first = task.place.mig[0].gpu;
  for (MirrorTenant* t = task.job->tenant; t != nullptr; t = t->parent) {
    t->taken.add(taken, sign);
    if (!task.job->spec.preemptible) t->taken_unpreemptible.add(taken, sign);
    t->running_jobs += static_cast<int>(runs) - static_cast<int>(ran);
    if (first >= 0)
      t->milli_by_model[task.node->spec.gpus[static_cast<std::size_t>(first)].model] +=
          sign * taken.gpu_milli;
  }
}

}  // namespace gs
