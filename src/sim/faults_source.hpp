// FaultsSource: from a seed, a cluster, its tenants, and one action after another that happens to
// them: load, failures, churn. Each seed leaves some kinds of things out (swarm testing): a bug
// that needs a crowded queue of one kind is not found by always mixing everything.
//
// Invariant: same seed and same world, same actions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/rng.hpp"
#include "sim/world.hpp"

namespace gs {

// How long tasks take from now on to start, and to go when they are told to.
struct Delays {
  Duration start, stop;
};

// A snapshot is taken, and a second engine goes on from it beside the first.
struct BeginTwin {};

struct Action {
  Instant at;
  std::variant<Command, Delays, BeginTwin> what;
  std::optional<Duration> runs;  // SubmitJob: how long its tasks really run
};

std::string describe(const Action& action);

class FaultsSource {
 public:
  explicit FaultsSource(std::uint64_t seed);

  // Estimates are right, nothing breaks, nobody is evicted: reserved starts have to hold.
  bool calm() const { return calm_; }
  Duration tick_every() const { return tick_every_; }
  // Configuration, topology, nodes and tenants.
  std::vector<Action> beginning();
  Action next(const World& world);

 private:
  enum Kind {
    kSubmit,
    kCancel,
    kHold,
    kPriority,
    kArrive,
    kGpuReport,
    kNodeLost,
    kNodeReport,
    kCordon,
    kTaskFails,
    kTenant,
    kTenantGoes,
    kConfig,
    kDelays,
    kTwin,
    kKinds
  };

  Node make_node(int number);
  Tenant make_tenant(int number);
  Config make_config();
  Job make_job();
  TaskRequest make_request();
  void make_gpu_request(GpuRequest& gpu);
  void add_wishes(TaskRequest& request);
  void make_groups(Job& job);
  void make_gang(Job& job);
  void make_leader_and_workers(Job& job);
  void set_times(Job& job, Duration runs);

  std::optional<Command> draw(Kind kind, const World& world);
  Command submit();
  std::optional<Command> gpu_report();
  std::optional<Command> node_lost();
  std::optional<Command> node_report();
  std::optional<Command> cordon();
  std::optional<Command> task_fails(const World& world);
  std::optional<Command> tenant_goes();
  std::string any_job();
  std::string level();
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[rng_.below(from.size())];
  }

  Rng rng_;
  bool calm_ = false;
  std::vector<double> weights_;  // by Kind
  std::vector<double> jobs_;     // by kind of job
  Duration pace_;                // mean time between two actions
  Duration mean_runtime_;
  Duration tick_every_;
  std::vector<std::string> levels_;
  std::vector<Node> nodes_;
  std::vector<Tenant> tenants_;
  Config config_;
  std::set<std::string> lost_;  // nodes that are away
  std::vector<std::string> recent_jobs_;
  std::optional<Duration> runs_;  // of the job drawn last
  int next_job_ = 1;
  int max_waiting_ = 20;
};

}  // namespace gs
