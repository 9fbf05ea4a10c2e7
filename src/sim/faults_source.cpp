#include "sim/faults_source.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/describe.hpp"

namespace gs {

std::string describe(const Action& action) {
  std::string text = describe(action.at) + ": ";
  if (const auto* delays = std::get_if<Delays>(&action.what))
    return text + fmt::format("tasks start after {} and stop after {}", describe(delays->start),
                              describe(delays->stop));
  if (std::holds_alternative<BeginTwin>(action.what)) return text + "a twin begins from a snapshot";
  text += describe(std::get<Command>(action.what));
  if (action.runs) text += ", runs " + describe(*action.runs);
  return text;
}

FaultsSource::FaultsSource(std::uint64_t seed) : rng_(seed) {
  calm_ = rng_.chance(0.15);
  weights_ = {10, 1, 0.7, 0.5, 1.5, 1.5, 0.3, 0.5, 0.6, 0.5, 0.3, 0.1, 0.1, 0.3, 0.005};
  for (std::size_t i = 1; i < kTwin; ++i)
    if (rng_.chance(0.3)) weights_[i] = 0;
  if (calm_)
    for (std::size_t i = 1; i < kTwin; ++i) weights_[i] = 0;
  jobs_ = {3, 2, 1, 2, 1, 0.5};  // whole, shared, MIG, several whole, without GPU, pinned
  for (double& weight : jobs_)
    if (rng_.chance(0.35)) weight = 0;
  jobs_[0] += 0.1;
  pace_ = seconds(rng_.between(1, 10));
  mean_runtime_ = Duration{pace_.ms * rng_.between(3, 40)};
  if (rng_.chance(0.4)) tick_every_ = seconds(rng_.between(5, 60));
  max_waiting_ = static_cast<int>(rng_.between(3, 40));
  const auto depth = rng_.below(3);
  if (depth == 1) levels_ = {"leaf"};
  if (depth == 2) levels_ = {"spine", "leaf"};
}

// ---------------------------------------------------------------- the cluster

std::vector<Action> FaultsSource::beginning() {
  config_ = make_config();
  const int nodes = static_cast<int>(rng_.between(1, 10));
  for (int i = 0; i < nodes; ++i) nodes_.push_back(make_node(i));
  const int tenants = calm_ ? 1 : static_cast<int>(rng_.between(1, 5));
  for (int i = 0; i < tenants; ++i) tenants_.push_back(make_tenant(i));
  std::vector<Action> actions;
  const auto add = [&](Command command) { actions.push_back({Instant{}, std::move(command), {}}); };
  add(SetConfig{config_});
  add(SetTopology{levels_});
  for (const Node& node : nodes_) add(PutNode{node});
  for (const Tenant& tenant : tenants_) add(PutTenant{tenant});
  if (!calm_ && rng_.chance(0.7))
    actions.push_back(
        {Instant{},
         Delays{milliseconds(rng_.between(0, 3000)), milliseconds(rng_.between(0, 9000))},
         {}});
  return actions;
}

Config FaultsSource::make_config() {
  Config config;
  config.strategy = static_cast<Strategy>(rng_.between(1, 3));
  config.implicit_topology = rng_.chance(0.7);
  config.aging_per_hour = rng_.chance(0.5) ? 60.0 : static_cast<double>(rng_.below(600));
  config.usage_half_life = minutes(rng_.between(1, 120));
  config.reservations = rng_.chance(0.3) ? 0 : rng_.chance(0.3) ? 1 : 10;
  config.preemption = rng_.chance(0.8);
  config.reclaim = rng_.chance(0.8);
  config.consolidation = rng_.chance(0.3);
  config.thermal_aware = rng_.chance(0.8);
  if (rng_.chance(0.1)) config.max_nodes_per_leaf = static_cast<int>(rng_.between(1, 3));
  if (rng_.chance(0.1)) config.max_gpus_per_leaf = static_cast<int>(rng_.between(4, 16));
  if (rng_.chance(0.1)) config.max_queue = rng_.between(5, 30);
  if (calm_) {
    config.preemption = config.reclaim = config.consolidation = false;
    config.reservations = rng_.chance(0.5) ? 1 : 10;
    config.max_queue = 0;
  }
  return config;
}

Node FaultsSource::make_node(int number) {
  struct Model {
    const char* name;
    std::int64_t memory_mib;
    bool islands, mig;
  };
  static const std::vector<Model> models = {{"H100-SXM5-80GB", 81'920, true, true},
                                            {"A100-SXM4-40GB", 40'960, true, true},
                                            {"T4", 16'384, false, false}};
  Node node;
  node.name = "n" + std::to_string(number);
  node.capacity.cpu_milli = 1'000 * rng_.between(8, 64);
  node.capacity.memory_bytes = rng_.between(32, 256) * 1024 * kMiB;
  node.capacity.named = {{"pods", rng_.between(4, 40)}};
  const Model& model = rng_.chance(0.7) ? models[0] : pick(models);
  const int gpus = static_cast<int>(pick(std::vector<int>{0, 1, 2, 4, 4, 8, 8}));
  const int island = static_cast<int>(pick(std::vector<int>{2, 4, 8}));
  const bool mig = model.mig && jobs_[2] > 0 && rng_.chance(0.4);
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-{}-{}", number, i);
    gpu.model = model.name;
    gpu.memory_mib = model.memory_mib;
    gpu.temperature_c = 40;
    gpu.island = model.islands ? fmt::format("i{}", i / island) : fmt::format("g{}", i);
    gpu.bandwidth_gbps = model.islands ? 600 : 0;
    gpu.numa = i / 4;
    gpu.mig_enabled = mig && i % 2 == 0;
    gpu.mig_dynamic = gpu.mig_enabled && rng_.chance(0.7);
    const std::string small = model.memory_mib > 50'000 ? "1g.10gb" : "1g.5gb";
    if (gpu.mig_enabled && (!gpu.mig_dynamic || rng_.chance(0.3)))
      for (int slot = 0; slot < 3; ++slot) gpu.mig.push_back({small, gpu.mig_dynamic ? slot : -1});
    node.gpus.push_back(gpu);
  }
  set_label(node.labels, "zone", rng_.chance(0.5) ? "a" : "b");
  if (rng_.chance(0.15)) node.taints.push_back({"dedicated", "x", TaintEffect::NoSchedule});
  for (std::size_t i = 0; i < levels_.size(); ++i)
    node.domain.push_back(
        fmt::format("{}-{}", levels_[i], number / (i + 1 == levels_.size() ? 2 : 4)));
  if (rng_.chance(0.5)) node.fabric = {2, 200, true, rng_.chance(0.5)};
  return node;
}

Tenant FaultsSource::make_tenant(int number) {
  Tenant tenant;
  tenant.id = "t" + std::to_string(number);
  tenant.created_order = number;
  if (calm_) return tenant;
  if (number > 1 && rng_.chance(0.4)) tenant.parent = "t0";
  tenant.priority = static_cast<int>(rng_.between(1, 3)) * 100;
  tenant.tier = static_cast<Tier>(rng_.below(4));
  tenant.guaranteed.gpu_milli = rng_.chance(0.5) ? 0 : 1000 * rng_.between(1, 12);
  if (rng_.chance(0.1)) tenant.guaranteed = kUnlimitedShare;
  if (rng_.chance(0.3)) tenant.limit.gpu_milli = 1000 * rng_.between(2, 20);
  if (rng_.chance(0.1)) tenant.limit.cpu_milli = 1000 * rng_.between(8, 80);
  if (rng_.chance(0.1)) tenant.limit.gpu_memory_mib = 81'920 * rng_.between(2, 16);
  if (rng_.chance(0.2)) tenant.limit.running_jobs = rng_.between(1, 8);
  if (rng_.chance(0.1)) tenant.limit.gpus_by_model = {{"H100-SXM5-80GB", rng_.between(1, 12)}};
  tenant.over_quota_weight = rng_.between(0, 4);
  tenant.allow_preemption = rng_.chance(0.85);
  tenant.can_preempt_others = rng_.chance(0.85);
  if (rng_.chance(0.1)) tenant.max_queue = rng_.between(2, 10);
  return tenant;
}

// ---------------------------------------------------------------- what happens

Action FaultsSource::next(const World& world) {
  const double wait = -std::log(1.0 - rng_.unit()) * static_cast<double>(pace_.ms);
  const Instant at = world.now() + Duration{static_cast<std::int64_t>(wait)};
  runs_.reset();
  double sum = 0;
  for (const double weight : weights_) sum += weight;
  for (int attempt = 0; attempt < 10; ++attempt) {
    double left = rng_.unit() * sum;
    int kind = 0;
    while (kind + 1 < kKinds && left >= weights_[static_cast<std::size_t>(kind)])
      left -= weights_[static_cast<std::size_t>(kind++)];
    if (kind == kDelays) {
      const bool slow = rng_.chance(0.2);  // a stop that was lost is found after a long while
      return {at,
              Delays{milliseconds(rng_.between(0, 3000)),
                     slow ? minutes(rng_.between(1, 10)) : milliseconds(rng_.between(0, 9000))},
              {}};
    }
    if (kind == kTwin) return {at, BeginTwin{}, {}};
    if (kind == kSubmit && static_cast<int>(world.engine().waiting()) >= max_waiting_) continue;
    if (auto command = draw(static_cast<Kind>(kind), world))
      return {at, std::move(*command), runs_};
  }
  return {
      at + Duration{4 * pace_.ms}, CordonNode{nodes_[0].name, false, false}, {}};  // let time pass
}

std::optional<Command> FaultsSource::draw(Kind kind, const World& world) {
  switch (kind) {
    case kSubmit:
      return submit();
    case kCancel:
      return CancelJob{any_job()};
    case kHold:
      return HoldJob{any_job(), rng_.chance(0.3)};
    case kPriority:
      return SetPriority{any_job(), static_cast<int>(rng_.between(0, 20)) * 100};
    case kArrive:
      return MembersArrived{any_job(), static_cast<int>(rng_.between(1, 8))};
    case kGpuReport:
      return gpu_report();
    case kNodeLost:
      return node_lost();
    case kNodeReport:
      return node_report();
    case kCordon:
      return cordon();
    case kTaskFails:
      return task_fails(world);
    case kTenant: {
      Tenant tenant = make_tenant(static_cast<int>(rng_.below(6)));
      for (Tenant& known : tenants_)
        if (known.id == tenant.id) tenant.parent = known.parent;  // can't move in the tree
      std::erase_if(tenants_, [&](const Tenant& known) { return known.id == tenant.id; });
      tenants_.push_back(tenant);
      return PutTenant{tenant};
    }
    case kTenantGoes:
      return tenant_goes();
    case kConfig:
      config_ = make_config();
      return SetConfig{config_};
    case kDelays:
    case kTwin:
    case kKinds:
      break;
  }
  return std::nullopt;
}

Command FaultsSource::submit() {
  Job job = make_job();
  recent_jobs_.push_back(job.id);
  if (recent_jobs_.size() > 60) recent_jobs_.erase(recent_jobs_.begin());
  return SubmitJob{std::move(job)};
}

std::string FaultsSource::any_job() { return recent_jobs_.empty() ? "j0" : pick(recent_jobs_); }

std::optional<Command> FaultsSource::gpu_report() {
  const Node& node = pick(nodes_);
  if (node.gpus.empty()) return std::nullopt;
  ReportGpu report{node.name, static_cast<int>(rng_.below(node.gpus.size())), Health::Healthy, 40};
  switch (rng_.below(8)) {
    case 0:
      report.health = Health::Unhealthy;
      break;
    case 1:
      report.health = Health::Unknown;
      break;
    case 2:
    case 3:
      report.temperature_c = static_cast<int>(rng_.between(60, 90));
      break;
    default:
      report.temperature_c = static_cast<int>(rng_.between(30, 60));
      break;
  }
  return report;
}

std::optional<Command> FaultsSource::node_lost() {
  const Node& node = pick(nodes_);
  if (lost_.erase(node.name) > 0) return PutNode{node};
  lost_.insert(node.name);
  return RemoveNode{node.name};
}

// The node as it is, or not ready, or with less of something than it had.
std::optional<Command> FaultsSource::node_report() {
  Node node = pick(nodes_);
  switch (rng_.below(6)) {
    case 0:
      node.ready = false;
      break;
    case 1:
      node.capacity.cpu_milli /= 2;
      break;
    case 2:
      if (!node.gpus.empty()) node.gpus.pop_back();
      break;
    case 3:
      if (!node.gpus.empty()) node.gpus[0].uuid += "-new";
      break;
    default:
      break;
  }
  lost_.erase(node.name);
  return PutNode{node};
}

std::optional<Command> FaultsSource::cordon() {
  const bool cordoned = rng_.chance(0.45);
  return CordonNode{pick(nodes_).name, cordoned, cordoned && rng_.chance(0.6)};
}

std::optional<Command> FaultsSource::task_fails(const World& world) {
  if (world.tasks().empty()) return std::nullopt;
  auto task = world.tasks().begin();
  std::advance(task, static_cast<std::ptrdiff_t>(rng_.below(world.tasks().size())));
  const Outcome outcome = pick(std::vector<Outcome>{Outcome::Failed, Outcome::NodeLost,
                                                    Outcome::Succeeded, Outcome::Stopped});
  return TaskEnded{task->second.place.task, outcome};
}

std::optional<Command> FaultsSource::tenant_goes() {
  return RemoveTenant{fmt::format("t{}", rng_.below(6))};
}

}  // namespace gs
