#include "sim/openb_all.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace gs::openb {
namespace {

// A bar on a terminal, on stderr, nothing anywhere else. Any thread may call it.
class Progress {
 public:
  explicit Progress(std::size_t runs) : parts_(runs, 0), on_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (on_) fmt::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // So much of this run is done, 0..1.
  void show(std::size_t run, double part, const std::string& what) {
    if (!on_) return;
    const std::lock_guard lock(mutex_);
    sum_ += part - parts_[run];
    parts_[run] = part;
    const double done = sum_ / static_cast<double>(parts_.size());
    constexpr int kWidth = 30;
    fmt::print(stderr, "\r\033[K[{:<{}}] {:3.0f} %  {}",
               std::string(static_cast<std::size_t>(done * kWidth), '#'), kWidth, done * 100, what);
    std::fflush(stderr);
  }

 private:
  std::mutex mutex_;
  std::vector<double> parts_;  // by run
  double sum_ = 0;
  bool on_;
};

// One run that was asked for.
struct Asked {
  const Workload* workload = nullptr;
  std::string policy;
  int seed = 0;
};

Result<std::vector<Workload>> read_workloads(const Selection& selection) {
  std::vector<std::string> names = selection.workloads;
  if (names.empty()) {
    Result<std::vector<std::string>> all = list_workloads(selection.folder);
    if (!all) return all.error();
    names = std::move(*all);
  }
  std::vector<Workload> workloads;
  for (const std::string& name : names) {
    Result<Workload> workload = read_workload(selection.folder, name);
    if (!workload) return workload.error();
    for (const int seed : selection.seeds)
      if (!workload->arrivals.contains(seed))
        return not_found(fmt::format("workload {}: no arrivals for seed {}", name, seed));
    workloads.push_back(std::move(*workload));
  }
  return workloads;
}

std::vector<Asked> runs_asked_for(const Selection& selection,
                                  const std::vector<Workload>& workloads) {
  std::vector<Asked> asked;
  for (const Workload& workload : workloads) {
    std::vector<int> seeds = selection.seeds;
    if (seeds.empty())
      for (const auto& [seed, order] : workload.arrivals) seeds.push_back(seed);
    for (const std::string& policy : selection.policies)
      for (const int seed : seeds) asked.push_back({&workload, policy, seed});
  }
  return asked;
}

}  // namespace

Result<std::vector<Run>> run_all(const Selection& selection) {
  const Result<std::vector<TraceNode>> nodes = read_nodes(selection.folder);
  if (!nodes) return nodes.error();
  const Result<std::vector<Workload>> workloads = read_workloads(selection);
  if (!workloads) return workloads.error();
  const std::vector<Asked> asked = runs_asked_for(selection, *workloads);
  std::vector<std::optional<Result<Run>>> done(asked.size());
  Progress progress(asked.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < asked.size(); i = next++) {
      const auto& [workload, policy, seed] = asked[i];
      const std::string what = fmt::format("{} {} seed {}", workload->name, policy, seed);
      done[i] =
          run(*nodes, *workload, policy, seed, [&](double part) { progress.show(i, part, what); });
      progress.show(i, 1, what);
      if (!*done[i]) next = asked.size();  // nobody starts another one
    }
  };
  {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t jobs = selection.jobs > 0 ? static_cast<std::size_t>(selection.jobs) : cores;
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(jobs, asked.size()); ++i) threads.emplace_back(work);
    work();
  }
  std::vector<Run> runs;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!done[i]) continue;  // another one failed first
    Result<Run>& one = *done[i];
    if (!one)
      return Error{one.error().code,
                   fmt::format("{} {} seed {}: {}", asked[i].workload->name, asked[i].policy,
                               asked[i].seed, one.error().message)};
    runs.push_back(std::move(*one));
  }
  return runs;
}

}  // namespace gs::openb
