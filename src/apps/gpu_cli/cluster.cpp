// status, nodes, gpus, drain, undrain: the machines.
#include "apps/gpu_cli/cluster.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {

std::string bar(double part, std::size_t width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(width * 8)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  for (std::size_t i = (eighths + 7) / 8; i < width; ++i) out += "·";
  return out;
}

Cell node_state(const Json& node) {
  if (!node.value("online", false))
    return {node.value("lost", false) ? "lost" : "offline", Paint::Red};
  if (node.value("draining_mode", false)) return {"draining", Paint::Yellow};
  if (node.value("cordoned", false)) return {"cordoned", Paint::Yellow};
  return {"online", Paint::Green};
}

std::string gpu_models(const Json& node) {
  std::string out;
  for (const Json& gpu : list_of(node, "gpus")) {
    const std::string model = text_of(gpu, "model");
    if (out.find(model) == std::string::npos) out += (out.empty() ? "" : ",") + model;
  }
  return out;
}

namespace {

struct StatusFlags {
  bool kube = false;
};
struct NodeFlags {
  std::string node;
  bool keep_jobs = false;
};

std::string status_words(const Cli& cli, const Json& s) {
  const auto n = [&](const char* field) { return number_text(number_of(s, field)); };
  std::string out = "Cluster Status:\n";
  out += fmt::format("  GPUs: {} total, {} available, {:.0f} % busy on average{}\n",
                     n("total_gpus"), n("available_gpus"), number_of(s, "avg_gpu_utilization"),
                     s.value("simulated_gpus", false) ? " (some are simulated)" : "");
  out += fmt::format("  Nodes: {} total, {} online\n", n("total_nodes"), n("online_nodes"));
  out += fmt::format("  Jobs: {} total, {} running, {} pending", n("total_jobs"), n("running_jobs"),
                     n("pending_jobs"));
  if (number_of(s, "scheduled_jobs") > 0) out += fmt::format(", {} starting", n("scheduled_jobs"));
  if (number_of(s, "preemptions") > 0) out += fmt::format("; {} preempted ever", n("preemptions"));
  out += "\n";
  if (!s.value("leader", true))
    out += paint("  This server does not lead\n", Paint::Yellow, cli.colour());
  return out;
}

std::string kube_status_words(const Cli& cli, const Json& s) {
  const auto n = [&](const char* of, const char* field) {
    return number_text(number_of(s.value(of, Json::object()), field));
  };
  std::string out = "Cluster Status:\n";
  out += fmt::format("  GPUs: {} usable, {} free\n", n("gpus", "total"), n("gpus", "free"));
  out += fmt::format("  Nodes: {} total, {} ready\n", n("nodes", "total"), n("nodes", "ready"));
  out += fmt::format("  Pods: {} bound, {} being bound, {} waiting\n", n("pods", "bound"),
                     n("pods", "binding"), n("pods", "waiting"));
  const Json& waiting = list_of(s, "waiting");
  if (waiting.empty()) return out;
  Table table({"WAITING POD", "SINCE", "REASON"});
  const Instant now = wall_clock();
  for (const Json& pod : waiting)
    table.add({text_of(pod, "pod"), when(cli, pod, "since", now), text_of(pod, "reason")});
  return out + "\n" + table.text(cli.colour());
}

Result<int> kube_status(Cli& cli, Session& session) {
  const Result<Json> answer = session.get("/status");
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return kube_status_words(cli, *answer); });
  return 0;
}

Result<int> status(Cli& cli, Session& session, const StatusFlags& flags) {
  if (flags.kube) return kube_status(cli, session);
  const Result<Json> answer = session.get("/api/v1/cluster/status");
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return status_words(cli, *answer); });
  return 0;
}

std::string amount_of(const Json& node, const char* available, const char* total) {
  return fmt::format("{}/{}", number_text(number_of(node, available)),
                     number_text(number_of(node, total)));
}

std::string node_table(const Cli& cli, const Json& nodes) {
  const Instant now = wall_clock();
  std::vector<std::string> titles = {"NODE",       "STATE",        ">FREE GPUS", "MODEL",
                                     ">FREE CPUS", ">FREE MEMORY", "HEARTBEAT"};
  if (cli.is_wide()) titles.insert(titles.end(), {"ADDRESS", "VERSION", "CONTAINERS", "LABELS"});
  Table table(titles);
  for (const Json& node : nodes) {
    std::vector<Cell> row = {
        text_of(node, "name"),
        node_state(node),
        amount_of(node, "available_gpus", "total_gpus"),
        gpu_models(node) + (node.value("simulated", false) ? " (simulated)" : ""),
        amount_of(node, "available_cpu_cores", "total_cpu_cores"),
        memory_text(number_of(node, "available_memory_mb")),
        when(cli, node, "last_heartbeat", now)};
    if (cli.is_wide()) {
      row.emplace_back(text_of(node, "ip_address"));
      row.emplace_back(text_of(node, "agent_version"));
      row.emplace_back(text_of(node, "container_runtime"));
      std::string labels;
      for (const auto& [key, value] : node.value("labels", Json::object()).items())
        labels += (labels.empty() ? "" : ",") + key + "=" + value.get<std::string>();
      row.emplace_back(labels);
    }
    table.add(std::move(row));
  }
  return table.text(cli.colour());
}

Result<int> nodes(Cli& cli, Session& session, const NodeFlags& flags) {
  const bool one = !flags.node.empty();
  const Result<Json> answer =
      session.get(one ? path_of("nodes", flags.node) : std::string("/api/v1/nodes"));
  if (!answer) return answer.error();
  cli.show(*answer, [&] {
    const Json nodes = one ? Json::array({*answer}) : list_of(*answer, "nodes");
    if (nodes.empty()) return std::string("no nodes\n");
    std::string out = node_table(cli, nodes);
    return one ? out + "\n" + gpu_table(cli, list_of(*answer, "gpus")) : out;
  });
  return 0;
}

Result<int> gpus(Cli& cli, Session& session, const NodeFlags&) {
  const Result<Json> answer = session.get("/api/v1/gpus");
  if (!answer) return answer.error();
  cli.show(*answer, [&] {
    const Json& list = list_of(*answer, "gpus");
    return list.empty() ? std::string("no GPUs\n") : gpu_table(cli, list);
  });
  return 0;
}

Result<int> drain(Cli& cli, Session& session, const NodeFlags& flags) {
  const Result<Json> answer =
      session.send("POST", path_of("nodes", flags.node, "drain") +
                               query_text({{"keep_jobs", flags.keep_jobs ? "true" : ""}}));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return text_of(*answer, "message") + "\n"; });
  return 0;
}

Result<int> undrain(Cli& cli, Session& session, const NodeFlags& flags) {
  const Result<Json> answer = session.send("POST", path_of("nodes", flags.node, "undrain"));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return text_of(*answer, "message") + "\n"; });
  return 0;
}

}  // namespace

std::string gpu_table(const Cli& cli, const Json& gpus) {
  std::vector<std::string> titles = {"NODE",   ">GPU",  "MODEL",  "HEALTH", ">BUSY",
                                     "MEMORY", ">TEMP", ">POWER", "JOBS"};
  if (cli.is_wide()) titles.insert(titles.end(), {"ID", ">ERRORS", "LAST ERROR"});
  Table table(titles);
  for (const Json& gpu : gpus) {
    std::string jobs;
    for (const Json& job : list_of(gpu, "jobs"))
      jobs += (jobs.empty() ? "" : ",") + job.get<std::string>();
    const std::string health = text_of(gpu, "health");
    const bool hot = gpu.value("thermal_throttle", false);
    std::vector<Cell> row = {text_of(gpu, "node"),
                             number_text(number_of(gpu, "index")),
                             text_of(gpu, "model"),
                             Cell(health, health == "healthy" ? Paint::Green : Paint::Red),
                             fmt::format("{:.0f}%", number_of(gpu, "utilization")),
                             fmt::format("{}/{}", memory_text(number_of(gpu, "memory_used_mb")),
                                         memory_text(number_of(gpu, "memory_total_mb"))),
                             Cell(fmt::format("{:.0f}°C", number_of(gpu, "temperature")),
                                  hot ? Paint::Red : Paint::Plain),
                             fmt::format("{:.0f}W", number_of(gpu, "power_usage")),
                             jobs};
    if (cli.is_wide()) {
      row.emplace_back(text_of(gpu, "id"));
      row.emplace_back(number_text(number_of(gpu, "error_count")));
      row.emplace_back(text_of(gpu, "last_error"));
    }
    table.add(std::move(row));
  }
  return table.text(cli.colour());
}

void add_cluster(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("status", "The cluster in a few figures")->alias("cluster");
  auto status_flags = std::make_shared<StatusFlags>();
  command->add_flag("--kube", status_flags->kube,
                    "Of a Kubernetes cluster, where --server is gpu-scheduler kube");
  on_chosen(*command, cli, status_flags, status);

  auto flags = std::make_shared<NodeFlags>();
  command = app.add_subcommand("nodes", "List nodes, or show one with its GPUs");
  command->add_option("node", flags->node, "Name of a node");
  on_chosen(*command, cli, flags, nodes);

  command = app.add_subcommand("gpus", "List GPUs with what they do");
  on_chosen(*command, cli, flags, gpus);

  command = app.add_subcommand("drain", "Take a node out of service: its jobs go elsewhere");
  command->add_option("node", flags->node, "Name of the node")->required();
  command->add_flag("--keep-jobs", flags->keep_jobs, "Let its jobs end; only take no new ones");
  on_chosen(*command, cli, flags, drain);

  command = app.add_subcommand("undrain", "Put a node into service again");
  command->add_option("node", flags->node, "Name of the node")->required();
  on_chosen(*command, cli, flags, undrain);
}

}  // namespace gs::cli
