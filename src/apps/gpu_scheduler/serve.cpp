#include "apps/gpu_scheduler/serve.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/gpu_scheduler/local_agent.hpp"
#include "apps/gpu_scheduler/server.hpp"
#include "base/log.hpp"
#include "drivers/auth/secret.hpp"
#include "net/tls_files.hpp"
#include "wire/settings_yaml.hpp"

extern char** environ;

namespace gs {
namespace {

struct Flags {
  std::string config;
  std::string state_dir;
  std::vector<std::string> set;  // key=value
  bool check_config = false;
  bool print_config = false;
};

Environment environment() {
  Environment out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string text = *at;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos)
      out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

std::string default_state_dir() {
  if (::geteuid() == 0) return "/var/lib/gpu-scheduler";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::string(state) + "/gpu-scheduler";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/gpu-scheduler";
}

Result<Settings> read_settings(const Flags& flags) {
  Result<Settings> settings = load_settings(flags.config, environment());
  if (!settings) return settings;
  for (const std::string& pair : flags.set) {
    const std::size_t equals = pair.find('=');
    const SettingKey* key =
        equals == std::string::npos ? nullptr : find_setting(pair.substr(0, equals));
    if (key == nullptr) return invalid("--set " + pair + ": want KEY=VALUE with a key of the file");
    if (Status s = set_value(*key, *settings, pair.substr(equals + 1)); !s)
      return invalid("--set " + pair + ": " + s.error().message);
    if (pair.starts_with("database.")) settings->database.given = true;
  }
  if (Status s = validate(*settings); !s) return s.error();
  if (settings->api.enable_tls)
    if (Status s = check_tls_files(settings->api.tls_cert_path, settings->api.tls_key_path); !s)
      return s.error();
  return settings;
}

bool wants_local_agent(const Settings& settings) {
  if (settings.agent.local != Toggle::Auto) return settings.agent.local == Toggle::On;
  return is_loopback(settings.api.bind);
}

// Where callers have to say who they are, the local agent has a token of its own; nobody has to
// set one up for it.
Status give_token(Settings& settings, const std::string& state_dir) {
  if (!wants_local_agent(settings) || !auth_required(settings)) return ok_status();
  if (!settings.auth.agent_token_file.empty()) return ok_status();
  Result<std::string> path = secret_in(state_dir + "/agent.token");
  if (!path) return path.error();
  settings.auth.agent_token_file = *path;
  return ok_status();
}

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// What the local agent runs images with; empty: nothing, images are ignored.
std::string container_runtime(const Settings& settings) {
  const std::string& wanted = settings.agent.container_runtime;
  if (wanted == "none") return {};
  if (wanted == "auto") {
    for (const char* program : {"docker", "podman", "nerdctl"})
      if (is_installed(program)) return program;
    return {};
  }
  if (is_installed(wanted)) return wanted;
  log_warn("the container runtime is not installed: jobs run without their images",
           {{"agent.container_runtime", wanted}});
  return {};
}

std::vector<std::string> agent_arguments(const Settings& settings, const Server& server,
                                         const std::string& state_dir) {
  std::vector<std::string> arguments = {
      "/proc/self/exe", "agent",
      "--server",       server.agent_address(),
      "--parent",       std::to_string(::getpid()),
      "--state-dir",    state_dir + "/agent",
      "--simulate",     settings.agent.simulate.empty() ? "auto" : settings.agent.simulate};
  if (!settings.agent.node_id.empty()) {
    arguments.emplace_back("--node-id");
    arguments.push_back(settings.agent.node_id);
  }
  if (const std::string runtime = container_runtime(settings); !runtime.empty()) {
    arguments.emplace_back("--container-runtime");
    arguments.push_back(runtime);
  }
  if (!settings.auth.agent_token_file.empty()) {
    arguments.emplace_back("--token-file");
    arguments.push_back(settings.auth.agent_token_file);
  }
  return arguments;
}

void log_start(const Settings& settings, const Server& server) {
  const std::string scheme = settings.api.enable_tls ? "https" : "http";
  log_info("serving",
           {{"rest", fmt::format("{}://{}:{}", scheme, settings.api.bind, server.http_port())},
            {"grpc", fmt::format("{}:{}", settings.api.bind, server.grpc_port())},
            {"metrics", server.metrics_port() == 0
                            ? std::string("off")
                            : fmt::format("http://{}:{}{}", settings.api.bind,
                                          server.metrics_port(), settings.metrics.path)}});
  if (!auth_required(settings))
    log_warn("nobody has to say who they are: everybody who reaches this address is admin",
             {{"bind", settings.api.bind}});
  for (const std::string& key : keys_without_effect(settings))
    log_warn("a setting has no effect here", {{"key", key}});
}

timespec timespec_of(LocalAgent::Clock::duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(duration - whole);
  return {whole.count(), rest.count()};
}

// Until somebody wants it to end; SIGHUP reads the settings again.
void wait_for_end(const sigset_t& signals, const Flags& flags, const std::string& state_dir,
                  Server& server, LocalAgent& agent) {
  for (;;) {
    const timespec patience = timespec_of(agent.look());
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal < 0 || signal == SIGCHLD) continue;
    if (signal != SIGHUP) {
      log_info("stopping", {{"signal", signal}});
      return;
    }
    Result<Settings> fresh = read_settings(flags);
    if (fresh)
      if (Status s = give_token(*fresh, state_dir); !s) fresh = s.error();
    Status reloaded = fresh ? server.reload(*fresh) : Status(fresh.error());
    if (reloaded)
      log_info("settings were read again");
    else
      log_error("settings stay as they were", {{"error", reloaded.error().message}});
  }
}

// Every connection is a file; many systems allow 1,024 of them until a program asks for more.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(const Flags& flags) {
  Result<Settings> settings = read_settings(flags);
  if (!settings) {
    fmt::print(stderr, "gpu-scheduler: {}\n", settings.error().message);
    return 2;
  }
  if (flags.print_config) fmt::print("{}", settings_text(*settings));
  if (flags.check_config && !flags.print_config) {
    fmt::print("the configuration is valid\n");
    for (const std::string& key : keys_without_effect(*settings))
      fmt::print("{} has no effect here\n", key);
  }
  if (flags.check_config || flags.print_config) return 0;

  set_log(log_level(*settings), log_format(*settings));
  const std::string state_dir = flags.state_dir.empty() ? default_state_dir() : flags.state_dir;
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  if (error) {
    fmt::print(stderr, "gpu-scheduler: can't create {}: {}\n", state_dir, error.message());
    return 1;
  }
  raise_file_limit();
  // Blocked here, and so in all threads: they are waited for in one place.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  if (Status s = give_token(*settings, state_dir); !s) {
    fmt::print(stderr, "gpu-scheduler: {}\n", s.error().message);
    return 1;
  }
  Result<std::unique_ptr<Server>> server = Server::start(*settings, state_dir);
  if (!server) {
    fmt::print(stderr, "gpu-scheduler: {}\n", server.error().message);
    return 1;
  }
  log_start(*settings, **server);
  LocalAgent agent;
  if (wants_local_agent(*settings)) {
    std::filesystem::create_directories(state_dir + "/agent", error);
    agent.start(agent_arguments(*settings, **server, state_dir));
  }
  wait_for_end(signals, flags, state_dir, **server, agent);
  agent.stop();
  (*server)->stop();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serve GPUs to tenants: REST, gRPC, a database, and a local agent");
  command->add_option("--config", flags->config, "Configuration file (YAML)")
      ->check(CLI::ExistingFile);
  command->add_option("--state-dir", flags->state_dir,
                      "Where the database and the local agent keep their files");
  command->add_option("--set", flags->set, "Override a key: --set api.http_port=8081")
      ->type_name("KEY=VALUE");
  command->add_flag("--check-config", flags->check_config,
                    "Say whether the configuration is valid, and end");
  command->add_flag("--print-config", flags->print_config,
                    "Print the configuration that is in force, and end");
  command->callback([flags, &exit_code] { exit_code = serve(*flags); });
}

}  // namespace gs
