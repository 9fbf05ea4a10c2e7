#include "agent/agent.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "agent/channel.hpp"
#include "agent/clock.hpp"
#include "agent/log.hpp"
#include "agent/nvml_gpus.hpp"
#include "agent/simulated_gpus.hpp"
#include "base/rng.hpp"

namespace gs::agent {
namespace {

constexpr std::int64_t kFirstPauseMs = 100, kLastPauseMs = 5000;
constexpr const char* kAutomatic = "16xH100-SXM5-80GB";

std::int64_t sample_interval_ms(const Options& options) {
  return options.heartbeat_ms > 0 ? std::clamp<std::int64_t>(options.heartbeat_ms, 50, 1000) : 1000;
}

// Who we are as long as this state directory lasts, whatever happens to the process.
Result<std::string> instance_in(const std::string& state_dir) {
  const std::string path = state_dir + "/instance";
  if (const auto known = read_file(path); known && !trim(*known).empty()) return trim(*known);
  const std::string fresh = trim(read_file("/proc/sys/kernel/random/uuid").value_or(""));
  if (fresh.empty()) return Error{ErrorCode::Unavailable, "the kernel makes no random names"};
  if (Status s = replace_file(path, fresh + "\n", Durability::Now); !s) return s.error();
  return fresh;
}

}  // namespace

Result<std::unique_ptr<GpuSource>> choose_gpus(const Options& options) {
  if (!options.simulate.empty() && options.simulate != "auto")
    return simulated_gpus(options.simulate, options.simulate_file);
  Result<std::unique_ptr<GpuSource>> real = nvml_gpus();
  if (real.ok() && (options.simulate.empty() || !real.value()->list().entries.empty())) return real;
  if (options.simulate == "auto") return simulated_gpus(kAutomatic, options.simulate_file);
  return no_gpus(real.error().message);
}

Result<std::unique_ptr<Agent>> Agent::create(Options options) {
  if (options.node_id.empty()) options.node_id = machine_under(options.sysfs_root).hostname;
  if (options.state_dir.empty()) options.state_dir = default_state_dir();
  if (Status made = make_directories(options.state_dir, 0711); !made.ok()) return made.error();
  std::optional<Fd> lock = try_lock(options.state_dir + "/lock");
  if (!lock)
    return Error{ErrorCode::Conflict,
                 fmt::format("another agent uses {}, or it cannot be locked; an agent of its own "
                             "needs its own --state-dir and --node-id",
                             options.state_dir)};
  Result<std::string> instance = instance_in(options.state_dir);
  if (!instance.ok()) return instance.error();
  options.instance_id = *instance;
  Result<std::unique_ptr<GpuSource>> source = choose_gpus(options);
  if (!source.ok()) return source.error();
  return std::unique_ptr<Agent>(
      new Agent(std::move(options), std::move(*lock), locked(std::move(*source))));
}

Agent::Agent(Options options, Fd lock, std::unique_ptr<GpuSource> source)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      source_(std::move(source)),
      sampler_(*source_, sample_interval_ms(options_),
               [this] {
                 const std::lock_guard guard(mutex_);
                 if (session_ != nullptr) session_->heartbeat_soon();
               }),
      tasks_(options_.state_dir, options_.binary,
             [this](const std::string& allocation_id) { outbox_.report(allocation_id); }) {
  log_info("{}", source_->describe());
}

namespace {

// "a:9090,b:9090"
std::vector<std::string> servers_of(const std::string& list) {
  std::vector<std::string> servers;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (end > at) servers.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  if (servers.empty()) servers.push_back(list);
  return servers;
}

}  // namespace

void Agent::run() {
  Rng rng(std::random_device{}());
  std::int64_t pause_ms = kFirstPauseMs;
  const std::vector<std::string> servers = servers_of(options_.server);
  for (std::size_t turn = 0;; ++turn) {
    // The one that leads answers; the others say that they don't.
    options_.server = servers[turn % servers.size()];
    const Parts parts{options_,
                      *source_,
                      sampler_,
                      tasks_,
                      outbox_,
                      options_.state_dir + "/lease",
                      own_address(options_)};
    bool accepted = false;
    {
      Session session(parts, connect(options_));
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) break;
        session_ = &session;
      }
      accepted = session.run();
      const std::lock_guard lock(mutex_);
      session_ = nullptr;
    }
    if (accepted) pause_ms = kFirstPauseMs;
    if (!accepted && (turn + 1) % servers.size() != 0 && pause(1)) continue;
    // Half of it by chance: after an outage not all machines come back at the same moment.
    if (!pause(rng.between(pause_ms / 2, pause_ms))) break;
    pause_ms = std::min(pause_ms * 2, kLastPauseMs);
  }
  leave();
}

bool Agent::pause(std::int64_t ms) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
  return !stopping_;
}

void Agent::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  if (session_ != nullptr) session_->end();
  wake_.notify_all();
}

void Agent::leave() {
  if (!options_.stop_tasks_on_exit) {
    if (const int running = tasks_.running(); running > 0)
      log_info("leaving; {} task(s) go on as long as their lease holds", running);
    return;
  }
  tasks_.stop_all(options_.grace_ms);
  const std::int64_t give_up = boottime_ms() + options_.grace_ms + 10'000;
  while (tasks_.running() > 0 && boottime_ms() < give_up) sleep_ms(20);
  log_info("leaving; {} task(s) still run", tasks_.running());
}

}  // namespace gs::agent
