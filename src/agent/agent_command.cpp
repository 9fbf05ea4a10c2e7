// The command line of the agent.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.hpp"
#include "agent/log.hpp"

namespace gs {
namespace agent {

std::string default_state_dir() {
  if (::geteuid() == 0) return "/var/lib/gpu-scheduler/agent";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/gpu-scheduler/agent";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/gpu-scheduler/agent";
}

namespace {

struct Flags {
  Options options;
  std::vector<std::string> labels, taints;
  std::string domain, token_file, container_args;
  bool inventory = false, json = false;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + separator) {
    if (c != separator) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, {}));
    }
  }
  return parts;
}

// "key=value:NoSchedule"
Result<Taint> parse_taint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string effect = colon == std::string::npos ? "" : text.substr(colon + 1);
  Taint taint;
  if (effect == "PreferNoSchedule")
    taint.effect = TaintEffect::PreferNoSchedule;
  else if (effect == "NoExecute")
    taint.effect = TaintEffect::NoExecute;
  else if (effect != "NoSchedule")
    return invalid(fmt::format(
        "--taint {:?}: want key=value:EFFECT with NoSchedule, PreferNoSchedule or NoExecute",
        text));
  const std::string pair = text.substr(0, colon);
  taint.key = pair.substr(0, pair.find('='));
  if (pair.find('=') != std::string::npos) taint.value = pair.substr(pair.find('=') + 1);
  return taint;
}

Result<Options> finish(const Flags& flags) {
  Options options = flags.options;
  for (const std::string& label : flags.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid(fmt::format("--label {:?}: want key=value", label));
    options.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  for (const std::string& text : flags.taints) {
    Result<Taint> taint = parse_taint(text);
    if (!taint.ok()) return taint.error();
    options.taints.push_back(*taint);
  }
  options.kube.json = flags.json;
  options.domain = split(flags.domain, '/');
  options.container_args = split(flags.container_args, ' ');
  if (!flags.token_file.empty()) {
    const auto token = read_file(flags.token_file);
    if (!token) return invalid("cannot read " + flags.token_file);
    options.token = trim(*token);
  }
  return options;
}

int print_inventory(const Options& options, bool json) {
  const Result<std::unique_ptr<GpuSource>> source = choose_gpus(options);
  if (!source.ok()) {
    fmt::print(stderr, "gpu-scheduler agent: {}\n", source.error().message);
    return 2;
  }
  const Machine machine = machine_under(options.sysfs_root);
  fmt::print("{}", json ? inventory_json(machine, *source.value())
                        : inventory_text(machine, *source.value()));
  return 0;
}

// Signals are waited for by one thread; the others are made with them blocked.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// True: it is gone already.
bool end_with(int parent) {
  if (parent == 0) return false;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return ::getppid() != parent;
}

int run_agent(Options options) {
  const sigset_t signals = block_signals();
  if (end_with(options.parent)) return 0;
  Result<std::unique_ptr<Agent>> agent = Agent::create(std::move(options));
  if (!agent.ok()) {
    fmt::print(stderr, "gpu-scheduler agent: {}\n", agent.error().message);
    return agent.error().code == ErrorCode::Conflict ? 3 : 2;
  }
  std::atomic<bool> over = false;
  std::thread listener([&] {
    while (!over)
      if (::sigwaitinfo(&signals, nullptr) > 0) agent.value()->stop();
  });
  agent.value()->run();
  over = true;
  // The listener waits for it, as for any other.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  ::pthread_kill(listener.native_handle(), SIGTERM);
  listener.join();
  return 0;
}

void add_connection_flags(CLI::App& app, Flags& flags) {
  Options& o = flags.options;
  app.add_option("--server", o.server,
                 "The scheduler, host:port; several, separated by commas, where one of them leads")
      ->capture_default_str();
  app.add_option("--node-id", o.node_id, "Name of this machine (default: its host name)");
  app.add_option("--state-dir", o.state_dir,
                 "Where tasks are kept (default: " + default_state_dir() + ")");
  app.add_option("--address", o.address,
                 "IP address for other members of a gang (default: that which reaches the server)");
  app.add_option("--label", flags.labels, "key=value; may be given several times");
  app.add_option("--taint", flags.taints, "key=value:EFFECT; may be given several times");
  app.add_option("--domain", flags.domain, "Place in the network, outermost first: spine/leaf");
  app.add_option("--token", o.token, "Sent as `authorization: Bearer`")
      ->envname("GPU_SCHEDULER_TOKEN");
  app.add_option("--token-file", flags.token_file, "The token is read from this file");
  app.add_option("--tls-ca", o.tls_ca, "Certificates to trust, PEM; switches TLS on");
  app.add_option("--heartbeat-ms", o.heartbeat_ms, "0: as the scheduler says; with --kube 30000")
      ->capture_default_str();
  app.add_option("--metrics-ms", o.metrics_ms, "0: none")->capture_default_str();
}

void add_task_flags(CLI::App& app, Flags& flags) {
  Options& o = flags.options;
  app.add_option("--default-user", o.default_user,
                 "Whom tasks without a user run as, when the agent is root")
      ->capture_default_str();
  app.add_flag("--allow-root", o.allow_root, "Tasks may run as root");
  app.add_flag("--stop-tasks-on-exit", o.stop_tasks_on_exit,
               "Stop all tasks when the agent is told to leave");
  app.add_option("--grace-ms", o.grace_ms, "From SIGTERM to SIGKILL, where an order does not say")
      ->capture_default_str();
  app.add_option("--cgroup-root", o.cgroup_root,
                 "A cgroup v2 directory for tasks; none: without (default: the system's)");
  app.add_option("--container-runtime", o.container_runtime,
                 "podman, docker or nerdctl: runs jobs that name an image");
  app.add_option("--container-args", flags.container_args,
                 "More arguments for its `run`, separated by spaces");
  app.add_option("--log-bytes", o.log_bytes, "Size of one file of a task's log")
      ->capture_default_str();
  app.add_option("--parent", o.parent, "")->group("");  // `serve` ends, and we with it
  app.add_option("--log-files", o.log_files, "How many of them are kept")->capture_default_str();
}

void add_kube_flags(CLI::App& app, Flags& flags) {
  KubeOptions& o = flags.options.kube;
  constexpr const char* kGroup = "Kubernetes";
  CLI::Option* kube =
      app.add_flag("--kube", o.on, "Write the GpuNodeStatus of this Kubernetes node; run no tasks")
          ->group(kGroup);
  const auto add = [&](CLI::Option* option) { option->needs(kube)->group(kGroup); };
  // Not only with --kube: the variable may be set for other reasons.
  app.add_option("--node-name", o.node_name, "The Kubernetes node's name (default: the host's)")
      ->envname("NODE_NAME")
      ->group(kGroup);
  add(app.add_option("--kubeconfig", o.kubeconfig,
                     "A kubeconfig; without it KUBECONFIG, ~/.kube/config, or the pod's account"));
  add(app.add_option("--context", o.context, "A context of the kubeconfig"));
  add(app.add_option("--pod-resources-socket", o.pod_resources_socket,
                     "Where the kubelet tells which pod has which device")
          ->capture_default_str());
  add(app.add_option("--bind", o.bind, "Address of /health, /ready and /metrics")
          ->capture_default_str());
  add(app.add_option("--port", o.port, "Its port; 0: any that is free")->capture_default_str());
  add(app.add_flag("--dry-run", o.dry_run, "Print the GpuNodeStatus as YAML, and exit"));
}

}  // namespace
}  // namespace agent

void add_agent(CLI::App& app, int& exit_code, RunKubeAgent run_kube) {
  CLI::App* command =
      app.add_subcommand("agent", "Offer this machine's GPUs to the scheduler and run its tasks");
  auto flags = std::make_shared<agent::Flags>();
  agent::add_connection_flags(*command, *flags);
  agent::add_task_flags(*command, *flags);
  agent::add_kube_flags(*command, *flags);
  agent::Options& o = flags->options;
  command->add_option("--simulate", o.simulate,
                      "Made-up GPUs, e.g. 8xH100-SXM5-80GB; auto: only if there are no real ones");
  command->add_option("--simulate-file", o.simulate_file,
                      "JSON that says how single simulated GPUs are; read again all the time");
  command
      ->add_option("--sysfs-root", o.sysfs_root, "A directory with another machine's proc and sys")
      ->group("");
  command->add_flag("--inventory", flags->inventory, "Print what this machine has, and exit");
  command->add_flag("--json", flags->json, "With --inventory or --dry-run: as JSON");
  command->callback([flags, &exit_code, run_kube = std::move(run_kube)] {
    Result<agent::Options> options = agent::finish(*flags);
    if (!options.ok()) {
      fmt::print(stderr, "gpu-scheduler agent: {}\n", options.error().message);
      exit_code = 2;
      return;
    }
    if (flags->inventory)
      exit_code = agent::print_inventory(*options, flags->json);
    else if (options->kube.on)
      exit_code = run_kube(*options);
    else
      exit_code = agent::run_agent(std::move(*options));
  });
}

}  // namespace gs
