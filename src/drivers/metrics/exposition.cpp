#include "drivers/metrics/exposition.hpp"

#include <cstdlib>

#include "base/version.hpp"
#include "net/metrics_text.hpp"

namespace gs {
namespace {

void write_jobs(MetricsText& out, const Figures& f) {
  out.family("jobs_total", "counter", "Times that a job came into a state.");
  for (std::size_t i = 0; i < kRunStates; ++i)
    out.sample(static_cast<double>(f.jobs_total[i]),
               {{"state", to_string(static_cast<RunState>(i))}});
  out.family("jobs_by_state", "gauge",
             "Jobs that are in a state now; ended ones as long as they are kept.");
  for (std::size_t i = 0; i < kRunStates; ++i)
    out.sample(static_cast<double>(f.jobs[i]), {{"state", to_string(static_cast<RunState>(i))}});
  out.family("queue_size", "gauge", "Jobs that wait for GPUs.");
  out.sample(static_cast<double>(f.queue_size));
  out.family("preemptions_total", "counter", "Jobs that had to give their GPUs to others.");
  out.sample(static_cast<double>(f.preemptions_total));
  out.family("rejections_total", "counter", "Submissions that were refused, by reason.");
  for (const auto& [reason, count] : f.rejections_total)
    out.sample(static_cast<double>(count), {{"reason", reason}});
}

void write(MetricsText& out, const Distribution& d, const MetricsText::Labels& labels = {}) {
  out.histogram(d.bounds, d.counts, d.sum, labels);
}

void write_times(MetricsText& out, const Figures& f) {
  out.family("scheduling_latency", "histogram", "Seconds that a scheduling cycle took.");
  write(out, f.scheduling_latency);
  out.family("queue_wait_seconds", "histogram", "From a job's submission to its first GPUs.");
  write(out, f.queue_wait);
  out.family("cycle_phase_seconds", "histogram", "Time that parts of the writer's turn took.");
  for (const auto& [phase, distribution] : f.phases) write(out, distribution, {{"phase", phase}});
  out.family("store_commit_seconds", "histogram", "Time that commits to the database took.");
  write(out, f.commit);
  out.family("store_commit_failures_total", "counter", "Commits that failed and were tried again.");
  out.sample(static_cast<double>(f.commit_failures_total));
}

void write_service(MetricsText& out, const Figures& f) {
  out.family("inbox_depth", "gauge", "Requests that wait for the writer.");
  out.sample(static_cast<double>(f.inbox_depth));
  out.family("inbox_capacity", "gauge", "Requests that may wait for the writer.");
  out.sample(static_cast<double>(f.inbox_capacity));
  out.family("leader", "gauge", "1 if this process decides, 0 if another one does.");
  out.sample(f.leader ? 1 : 0);
  out.family("turns_total", "counter", "Turns that were committed.");
  out.sample(static_cast<double>(f.turn));
  out.family("published_timestamp_seconds", "gauge", "When these figures were published.");
  out.sample(static_cast<double>(f.time.ms) / 1000.0);
  out.family("build_info", "gauge", "Always 1; the version is a label.");
  out.sample(1, {{"version", kVersion}});
}

void write_nodes(MetricsText& out, const Figures& f) {
  out.family("node_online", "gauge", "1 if the node's agent is in touch.");
  for (const NodeFigures& n : f.nodes) out.sample(n.online ? 1 : 0, {{"node", n.name}});
  out.family("node_cordoned", "gauge", "1 if the node takes no new work because somebody said so.");
  for (const NodeFigures& n : f.nodes) out.sample(n.cordoned ? 1 : 0, {{"node", n.name}});
  out.family("agent_lag_seconds", "gauge", "Time since the last heartbeat of the node's agent.");
  for (const NodeFigures& n : f.nodes) out.sample(n.agent_lag.seconds(), {{"node", n.name}});
}

// GPUs of a node and model for which `counts` holds.
template <typename Counts>
void write_gpu_count(MetricsText& out, const Figures& f, const char* name, const char* help,
                     Counts counts) {
  out.family(name, "gauge", help);
  for (const NodeFigures& node : f.nodes) {
    std::map<std::string, int> by_model;
    for (const GpuFigures& gpu : node.gpus) by_model[gpu.model] += counts(gpu) ? 1 : 0;
    for (const auto& [model, count] : by_model)
      out.sample(count, {{"node", node.name}, {"model", model}});
  }
}

template <typename Value>
void write_gpu(MetricsText& out, const Figures& f, const char* name, const char* help,
               Value value) {
  out.family(name, "gauge", help);
  for (const NodeFigures& node : f.nodes)
    for (const GpuFigures& gpu : node.gpus)
      out.sample(static_cast<double>(value(gpu)),
                 {{"node", node.name}, {"gpu", std::to_string(gpu.index)}});
}

void write_gpus(MetricsText& out, const Figures& f) {
  write_gpu_count(out, f, "gpus", "GPUs by node and model.",
                  [](const GpuFigures&) { return true; });
  write_gpu_count(out, f, "gpus_available", "GPUs that work could start on at once.",
                  [](const GpuFigures& g) { return g.available; });
  write_gpu_count(out, f, "gpus_unhealthy", "GPUs that get no work because something is wrong.",
                  [](const GpuFigures& g) { return !g.healthy; });
  write_gpu(out, f, "gpu_utilization", "Percent of time that a GPU is busy.",
            [](const GpuFigures& g) { return g.utilization_percent; });
  write_gpu(out, f, "gpu_temperature_celsius", "Temperature of a GPU; 0: not known.",
            [](const GpuFigures& g) { return g.temperature_c; });
  write_gpu(out, f, "gpu_power_watts", "Power that a GPU draws; 0: not known.",
            [](const GpuFigures& g) { return g.power_watts; });
  write_gpu(out, f, "gpu_memory_used_bytes", "Memory of a GPU that is in use.",
            [](const GpuFigures& g) { return g.memory_used_mb * 1048576; });
  write_gpu(out, f, "gpu_memory_bytes", "Memory of a GPU.",
            [](const GpuFigures& g) { return g.memory_total_mb * 1048576; });
}

template <typename Value>
void write_tenant(MetricsText& out, const Figures& f, const char* name, const char* type,
                  const char* help, Value value) {
  out.family(name, type, help);
  for (const TenantFigures& tenant : f.tenants)
    out.sample(static_cast<double>(value(tenant)), {{"tenant", tenant.id}});
}

void write_tenants(MetricsText& out, const Figures& f) {
  write_tenant(out, f, "tenant_gpus", "gauge", "GPUs that a tenant's jobs hold.",
               [](const TenantFigures& t) { return static_cast<double>(t.gpu_milli) / 1000.0; });
  write_tenant(out, f, "tenant_running_jobs", "gauge", "Jobs of a tenant that hold resources.",
               [](const TenantFigures& t) { return t.running; });
  write_tenant(out, f, "tenant_waiting_jobs", "gauge", "Jobs of a tenant that wait.",
               [](const TenantFigures& t) { return t.waiting; });
  write_tenant(out, f, "tenant_gpu_seconds_total", "counter", "GPU time that a tenant has used.",
               [](const TenantFigures& t) { return static_cast<double>(t.gpu_ms) / 1000.0; });
}

void write_process(MetricsText& out, const ProcessFigures& p) {
  const auto one = [&](const char* name, const char* type, const char* help, auto value) {
    out.plain_family(name, type, help);
    out.sample(static_cast<double>(value));
  };
  one("process_cpu_seconds_total", "counter", "CPU time used.", p.cpu_seconds);
  one("process_resident_memory_bytes", "gauge", "Memory in use.", p.resident_bytes);
  one("process_virtual_memory_bytes", "gauge", "Memory mapped.", p.virtual_bytes);
  one("process_open_fds", "gauge", "Open files and sockets.", p.open_fds);
  one("process_max_fds", "gauge", "Files and sockets that may be open.", p.max_fds);
  one("process_threads", "gauge", "Threads.", p.threads);
  one("process_start_time_seconds", "gauge", "When the process started.", p.start_time_seconds);
}

}  // namespace

std::string exposition(const std::string& name_space, const Figures& figures,
                       const Metrics& registry, const ProcessFigures& process) {
  MetricsText out(name_space);
  write_jobs(out, figures);
  write_times(out, figures);
  write_service(out, figures);
  write_nodes(out, figures);
  write_gpus(out, figures);
  write_tenants(out, figures);
  registry.write(out);
  write_process(out, process);
  return out.text();
}

std::map<std::string, double> sample_values(const std::string& text, std::string_view prefix) {
  std::map<std::string, double> values;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end == text.npos ? text.size() : end + 1;
    const std::size_t blank = line.rfind(' ');
    if (line.starts_with('#') || blank == line.npos || !line.starts_with(prefix)) continue;
    values[line.substr(0, blank)] = std::strtod(line.c_str() + blank + 1, nullptr);
  }
  return values;
}

}  // namespace gs
