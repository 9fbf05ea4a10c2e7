#include "drivers/rest/bodies.hpp"

#include "wire/clock_json.hpp"
#include "wire/job_json.hpp"
#include "wire/tenant_json.hpp"

namespace gs {
namespace {

constexpr double kHourMs = 3'600'000.0;

Json time_or_null(Instant time) { return time.ms == 0 ? Json() : Json(time_text(time)); }

double in_gpus(std::int64_t milli) { return static_cast<double>(milli) / kWholeGpu; }

const char* health_word(Health health) {
  return health == Health::Healthy     ? "healthy"
         : health == Health::Unhealthy ? "unhealthy"
                                       : "unknown";
}

void put_placement(Json& json, const JobRow& row) {
  Json gpus = Json::array();
  Json nodes = Json::array();
  // A job that waits has nothing, whatever it had before.
  const bool waits = row.state == RunState::Pending || row.state == RunState::Preempted;
  const Result<std::vector<Process>> processes = decode_processes(waits ? "" : row.placement);
  if (processes)
    for (const Process& process : *processes) {
      nodes.push_back(process.node);
      for (std::size_t i = 0; i < process.gpus.size(); ++i) {
        const bool named = i < process.gpu_ids.size() && !process.gpu_ids[i].empty();
        gpus.push_back(named ? process.gpu_ids[i]
                             : process.node + ":" + std::to_string(process.gpus[i]));
      }
    }
  json["node_name"] = nodes.empty() ? Json("") : nodes.front();
  json["allocated_nodes"] = std::move(nodes);
  json["allocated_gpus"] = std::move(gpus);
  if (!waits && !row.placement.empty())
    json["processes"] = Json::parse(row.placement, nullptr, false);
}

Json places_body(const std::vector<TaskPlace>& places) {
  Json list = Json::array();
  for (const TaskPlace& place : places)
    list.push_back({{"node", place.node}, {"rank", place.task.rank}, {"gpus", place.gpus}});
  return list;
}

}  // namespace

Json job_body(const JobRow& row) {
  Json json = Json::parse(row.spec, nullptr, false);
  if (!json.is_object()) json = Json::object();
  json["id"] = json["job_id"] = job_id(row.seq);
  json["state"] = to_string(row.state);
  json["priority"] = row.priority;
  json["held"] = row.held;
  json["submitted_at"] = time_text(row.submitted);
  json["scheduled_at"] = time_or_null(row.scheduled);
  json["started_at"] = time_or_null(row.started);
  json["completed_at"] = time_or_null(row.completed);
  json["message"] = row.message;
  json["attempt"] = row.attempt;
  json["preempted_count"] = row.preempted_count;
  json["exit_code"] = row.exit_code ? Json(*row.exit_code) : Json();
  if (row.signal != 0) json["signal"] = row.signal;
  json["stopping"] = row.ending != Ending::None;
  json["gpu_hours"] = static_cast<double>(row.gpu_ms) / kHourMs;
  put_placement(json, row);
  return json;
}

Json tenant_body(const TenantRow& row) {
  Json json = tenant_json(row.spec);
  json["id"] = tenant_id(row.seq);
  json["active"] = row.active;
  json["created_at"] = time_text(row.created);
  json["updated_at"] = time_text(row.updated);
  json["current_gpus"] = in_gpus(row.current_gpu_milli);
  json["current_gpu_memory_mb"] = row.current_gpu_memory_mb;
  json["current_cpu_cores"] = in_gpus(row.current_cpu_milli);
  json["current_memory_mb"] = row.current_memory_mb;
  json["current_jobs"] = row.current_jobs;
  json["total_jobs"] = row.total_jobs;
  json["successful_jobs"] = row.successful_jobs;
  json["failed_jobs"] = row.failed_jobs;
  json["total_gpu_hours"] = static_cast<double>(row.gpu_ms) / kHourMs;
  json["total_cost"] = row.total_cost;
  return json;
}

Json gpu_body(const NodeView& node, const GpuView& view, const Caller& caller) {
  const Gpu& gpu = view.gpu;
  Json json{{"id", gpu.uuid},
            {"node", node.row.node.name},
            {"index", gpu.index},
            {"model", gpu.model},
            {"memory_total_mb", gpu.memory_mib},
            {"memory_used_mb", view.report.memory_used_mb},
            {"health", health_word(gpu.health)},
            {"temperature", gpu.temperature_c},
            {"utilization", view.report.utilization},
            {"power_usage", view.report.power_w},
            {"thermal_throttle", view.hot},
            {"error_count", view.report.error_count},
            {"allocated", view.used_milli > 0},
            {"allocated_milli", view.used_milli},
            {"simulated", node.row.simulated}};
  if (!view.report.last_error.empty()) json["last_error"] = view.report.last_error;
  Json jobs = Json::array();
  for (const GpuJob& job : view.jobs)
    if (may_see(caller, job.tenant)) jobs.push_back(job_id(job.seq));
  json["jobs"] = std::move(jobs);
  if (gpu.mig_enabled) {
    Json instances = Json::array();
    for (const MigInstance& instance : gpu.mig)
      instances.push_back({{"profile", instance.profile}, {"start", instance.start}});
    json["mig"] = std::move(instances);
  }
  return json;
}

Json node_body(const NodeView& node, const Caller& caller) {
  const Node& spec = node.row.node;
  Json json{{"id", spec.name},
            {"name", spec.name},
            {"ip_address", node.row.address},
            {"online", node.online},
            {"lost", node.lost},
            {"schedulable", node.takes_jobs()},
            {"cordoned", node.row.cordoned},
            {"draining_mode", node.row.draining},
            {"simulated", node.row.simulated},
            {"agent_version", node.row.version},
            {"container_runtime", node.row.container_runtime},
            {"total_gpus", node.gpus.size()},
            {"available_gpus", node.available_gpus()},
            {"total_cpu_cores", in_gpus(spec.capacity.cpu_milli)},
            {"available_cpu_cores", in_gpus(spec.capacity.cpu_milli - node.used_cpu_milli)},
            {"total_memory_mb", spec.capacity.memory_bytes / kMiB},
            {"available_memory_mb", spec.capacity.memory_bytes / kMiB - node.used_memory_mb},
            {"cpu_utilization", node.cpu_utilization},
            {"memory_utilization", node.memory_utilization},
            {"last_heartbeat", time_text(node.last_contact)},
            {"registered_at", time_text(node.row.registered)},
            {"domain", spec.domain}};
  Json labels = Json::object();
  for (const auto& [key, value] : spec.labels) labels[key] = value;
  json["labels"] = std::move(labels);
  Json gpus = Json::array();
  for (const GpuView& gpu : node.gpus) gpus.push_back(gpu_body(node, gpu, caller));
  json["gpus"] = std::move(gpus);
  return json;
}

Json cluster_body(const ClusterView& view) {
  Json states = Json::object();
  for (const RunState state :
       {RunState::Pending, RunState::Scheduled, RunState::Running, RunState::Preempted})
    states[to_string(state)] = view.count(state);
  bool simulated = false;
  for (const NodeView& node : *view.nodes) simulated = simulated || node.row.simulated;
  return Json{
      {"total_nodes", view.total_nodes},    {"online_nodes", view.online_nodes},
      {"total_gpus", view.total_gpus},      {"available_gpus", view.available_gpus},
      {"total_jobs", view.total_jobs},      {"running_jobs", view.count(RunState::Running)},
      {"pending_jobs", view.waiting()},     {"scheduled_jobs", view.count(RunState::Scheduled)},
      {"jobs_by_state", std::move(states)}, {"avg_gpu_utilization", view.mean_gpu_utilization},
      {"preemptions", view.preemptions},    {"leader", view.leads},
      {"simulated_gpus", simulated}};
}

Json why_body(const Why& why) {
  const char* verdict = why.verdict == Verdict::NotNow  ? "not_now"
                        : why.verdict == Verdict::Never ? "never"
                                                        : "broken";
  Json json{
      {"verdict", verdict}, {"constraint", to_string(why.constraint)}, {"sentence", why.sentence}};
  Json filters = Json::array();
  for (const FilterCount& filter : why.filters)
    filters.push_back({{"filter", to_string(filter.filter)}, {"nodes", filter.nodes}});
  if (!filters.empty()) json["filters"] = std::move(filters);
  if (why.best)
    json["best_candidate"] = {{"node", why.best->node},
                              {"has", why.best->has},
                              {"needs", why.best->needs},
                              {"of", why.best->of}};
  if (why.quota)
    json["quota"] = {{"tenant_id", why.quota->tenant},
                     {"resource", why.quota->resource},
                     {"requested", why.quota->requested},
                     {"limit", why.quota->limit},
                     {"current", why.quota->current}};
  if (why.moves)
    json["would_move"] = {{"tasks", why.moves->tasks},
                          {"gpus", why.moves->gpus},
                          {"nodes", why.moves->nodes},
                          {"free_gpus_elsewhere", why.moves->free_elsewhere}};
  if (why.reservation)
    json["reservation"] = {{"start", time_text(why.reservation->start)},
                           {"nodes", why.reservation->nodes}};
  return json;
}

Json explanation_body(const Explanation& answer) {
  Json json{{"engine_state", answer.state}, {"places", places_body(answer.places)}};
  if (answer.why) json["why"] = why_body(*answer.why);
  Json scores = Json::array();
  for (const ScoreCard& score : answer.scores)
    scores.push_back({{"resource_availability", score.resource_availability},
                      {"topology_alignment", score.topology_alignment},
                      {"domain_utilization", score.domain_utilization},
                      {"historical_performance", score.historical_performance},
                      {"affinity", score.affinity},
                      {"total", score.total}});
  if (!scores.empty()) json["scores"] = std::move(scores);
  json["expected_start"] = answer.expected_start ? time_or_null(*answer.expected_start) : Json();
  return json;
}

Json dry_run_body(const DryRun& answer) {
  Json evicts = Json::array();
  for (const TaskRef& task : answer.evicts)
    if (evicts.empty() || evicts.back() != Json(task.job)) evicts.push_back(task.job);
  Json json{{"starts_now", answer.starts_now},
            {"places", places_body(answer.places)},
            {"evicts", std::move(evicts)}};
  if (answer.why) json["why"] = why_body(*answer.why);
  json["expected_start"] = answer.expected_start ? time_or_null(*answer.expected_start) : Json();
  return json;
}

Json usage_body(const UsageRow& row) {
  return Json{{"tenant_id", row.tenant},
              {"hour", time_text(row.hour)},
              {"gpu_hours", static_cast<double>(row.gpu_ms) / kHourMs},
              {"jobs_ended", row.jobs_ended},
              {"cost", row.cost}};
}

}  // namespace gs
