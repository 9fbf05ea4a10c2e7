// The agent of one machine: offers its GPUs to the scheduler and runs what it is told to.
//
// It may be stopped and started at any time: tasks run on under their supervisors and are found
// again. It never gives up looking for the scheduler.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "agent/options.hpp"
#include "agent/session.hpp"
#include "base/result.hpp"

namespace CLI {
class App;
}

namespace gs {

namespace agent {

class Agent {
 public:
  // Conflict: another agent uses the state directory.
  static Result<std::unique_ptr<Agent>> create(Options options);

  void run();   // until stop()
  void stop();  // from any thread

 private:
  Agent(Options options, Fd lock, std::unique_ptr<GpuSource> source);
  void leave();
  bool pause(std::int64_t ms);

  Options options_;
  Fd lock_;
  std::unique_ptr<GpuSource> source_;
  Outbox outbox_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;       // guarded by mutex_
  Session* session_ = nullptr;  // guarded by mutex_
  Sampler sampler_;
  Tasks tasks_;
};

// The GPUs that the options ask for.
Result<std::unique_ptr<GpuSource>> choose_gpus(const Options& options);
std::string default_state_dir();

}  // namespace agent

// `gpu-scheduler agent`; run_kube is called for `agent --kube` and returns the exit code.
using RunKubeAgent = std::function<int(const agent::Options& options)>;
void add_agent(CLI::App& app, int& exit_code, RunKubeAgent run_kube);

}  // namespace gs
