// Desk: the service's state and the rules by which it changes. It owns the engine, knows every
// job that has not ended, and turns what callers ask and agents report into commands for the
// engine, and the engine's effects into rows, orders and events.
//
// No thread, clock or I/O: one thread calls it, `now` comes with begin(). A turn is begin(), any
// number of asks and reports, perhaps a cycle(), and take(): what is in TurnResult is to be made
// durable first and sent out after that, in this order.
//
// Invariants: a job has at most one attempt whose processes hold GPUs; a new attempt begins only
// when every process of the one before is known to be gone. Rows of live jobs equal what the store
// holds plus what the next take() returns.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "service/fleet.hpp"
#include "service/store.hpp"

namespace gs {

struct DeskOptions {
  Config config;
  std::vector<std::string> topology;    // names of the levels of nodes' network paths
  Duration lease = seconds(60);         // an agent out of touch for so long stops its tasks
  Duration lease_margin = seconds(15);  // and after so much more we are certain of it
  Duration offline_after = seconds(15);
  Duration grace = seconds(10);
  double cost_per_gpu_hour = 0;  // of tenants that say nothing
};

struct TurnResult {
  Batch batch;
  std::vector<Outgoing> orders;
  std::vector<EventRow> events;  // all of them, those that are in the batch too
};

// A live node as readers see it.
struct NodeStatus {
  NodeRow row;
  bool online = false;
  bool in_engine = false;  // false: lost, its jobs run elsewhere
  bool stale = false;      // has reported other devices, which wait until nobody uses the old ones
  Instant last_contact;
  NodeReport report;
  // Processes there that nobody here knows, and the GPUs that they keep from others until they
  // are gone. They have been told to stop.
  std::map<std::string, std::vector<int>> strays;
};

class Desk {
 public:
  using FindEnded = std::function<Result<std::optional<JobRow>>(std::int64_t)>;

  // `find_ended` looks up rows of jobs that have ended (for requeue and dependencies).
  Desk(DeskOptions options, FindEnded find_ended);

  void load(const Loaded& loaded, Instant now);
  void reconfigure(const DeskOptions& options);

  // --- the turn ---
  void begin(Instant now);
  bool wants_cycle() const;
  void cycle();
  std::optional<Instant> next_wake() const;
  TurnResult take();

  // --- what callers ask; an error changes nothing ---
  Result<std::int64_t> submit(const JobSpec& spec);
  Result<std::vector<std::int64_t>> submit_array(const JobSpec& spec);
  Status cancel(std::int64_t job);
  Status hold(std::int64_t job, bool held);
  Status requeue(std::int64_t job);
  Status set_priority(std::int64_t job, int priority);
  Result<TenantRow> create_tenant(const TenantSpec& spec);
  Result<TenantRow> update_tenant(std::int64_t tenant, const TenantSpec& spec);
  Status remove_tenant(std::int64_t tenant);
  Status cordon(const std::string& node, bool cordoned, bool drain);
  Status remove_node(const std::string& node);
  Result<Explanation> explain(std::int64_t job);
  Result<DryRun> dry_run(const JobSpec& spec);
  void remember(KeyRow key) { batch_.keys.push_back(std::move(key)); }
  // What was answered to this key before, in this turn or in any that is recorded.
  Result<std::optional<KeyRow>> recall(Store& store, const std::string& tenant,
                                       const std::string& key) const;

  // --- what agents report ---
  Status registered(NodeRow row, const std::vector<TaskReport>& tasks);
  // NotFound: the agent must register (again).
  Status heartbeat(const std::string& node, const NodeReport& report,
                   const std::string& instance = {});
  void reported(const std::string& node, const TaskReport& report);

  // --- looking ---
  const Engine& engine() const { return *engine_; }
  Instant now() const { return now_; }
  const JobRow* job(std::int64_t seq) const;
  // Whose job it is, one that has ended too; nothing: there is no such job.
  Result<std::optional<std::string>> tenant_of(std::int64_t job) const;
  const TenantRow* tenant(std::int64_t seq) const;
  const std::map<std::string, NodeStatus>& nodes() const { return nodes_; }
  std::int64_t count(RunState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::size_t live_jobs() const { return jobs_.size(); }
  std::int64_t total_jobs() const { return total_jobs_; }
  std::int64_t preemptions() const { return preemptions_; }
  std::uint64_t reports() const { return reports_; }  // grows with each report of a node
  int queue_position(std::int64_t job) const;         // 1 is next; 0: does not wait
  const std::map<std::string, TenantRow>& tenants() const { return tenants_; }
  // Since they were taken last.
  std::array<std::uint64_t, 7> take_entered() { return std::exchange(entered_, {}); }
  std::vector<double> take_queue_waits() { return std::exchange(queue_waits_s_, {}); }
  // All that hold GPUs now, in no order.
  void for_each_process(const std::function<void(const JobRow&, const Process&)>& visit) const;

 private:
  struct LiveJob {
    JobRow row;
    std::shared_ptr<const JobSpec> spec;  // decoded when it is first needed
    int tasks = 1;                        // of the engine's job
    std::vector<TaskPlace> places;        // that the engine gave it
    std::vector<TaskPlace> leaving;       // that the engine wants back, as soon as they are free
    std::vector<Process> processes;       // that have not gone
    std::vector<Process> done;            // of the attempt under way, that ended well
    std::set<std::int64_t> waits_for;     // dependencies that have not ended
    std::optional<StopReason> evicted_by;
    std::optional<RunState> ended_as;  // while it waited: its end was heard of late
    std::optional<Instant> ended_at;   // of the process whose end is being worked off
    bool is_new = false, dirty = false;
  };

  // --- engine (desk.cpp) ---
  Status tell(const Command& command);  // its effects wait for settle()
  void settle();                        // works off effects until there are none
  void on(const StartTasks& effect);
  void on(const StopTasks& effect);
  void on(const NominateTasks&) {}  // nothing to do until it may start
  void on(const JobChanged& effect);
  void back_in_queue(LiveJob& live);
  void end(LiveJob& live, RunState state, const Why* why);
  void set_state(LiveJob& live, RunState state);
  void touch(LiveJob& live);
  void touch_tenant(const std::string& id);
  void event(std::string type, const LiveJob* live, std::string node, std::string message,
             bool durable = true);
  LiveJob* find(std::int64_t seq);
  LiveJob* find(const std::string& id);
  static std::string placement_of(const LiveJob& live);
  const JobSpec& spec_of(LiveJob& live);

  // --- jobs (desk_jobs.cpp) ---
  Status enter(LiveJob& live, const JobSpec& spec);  // into the engine
  Result<std::set<std::int64_t>> open_dependencies(const JobSpec& spec);
  Result<std::int64_t> accept(const JobSpec& spec, std::int64_t seq);
  void add(LiveJob live);
  void wake_dependents(std::int64_t job, RunState state);
  void resubmit(JobRow row);
  Status hold_in_engine(LiveJob& live);
  Error not_live(std::int64_t job) const;  // why a job can't be changed: it has ended, or never was

  // --- processes (desk_processes.cpp) ---
  void launch(LiveJob& live);
  void begin_attempt(LiveJob& live);
  StartOrder start_order(LiveJob& live, const Process& process);
  void note_devices(LiveJob& live, const Process& process);
  static Process* process_of(LiveJob& live, const TaskRef& task);
  void order_stop(LiveJob& live, Process& process, const std::string& reason);
  void give_back(std::vector<TaskPlace>& from, const TaskRef& task, Outcome outcome);
  void started(LiveJob& live, Process& process);
  void gone(std::int64_t job, const Process& process, const TaskReport& report);
  void ended_by_itself(LiveJob& live, const Process& process, const TaskReport& report);
  void ended_unheard(const std::string& node, const TaskReport& report);
  Instant end_of(const TaskReport& report, Instant since) const;
  void charge(LiveJob& live, const Process& process, Instant until);

  // --- nodes (desk_nodes.cpp) ---
  void check_nodes();
  void lose_node(NodeStatus& node);
  Status put_node(NodeStatus& node);
  void reconcile(const std::string& node, const std::vector<TaskReport>& tasks);
  void reconcile_process(LiveJob& live, Process& process, const TaskReport* report);
  void report_lost(const Process& process, std::string why);
  Status refuse_impostor(const NodeStatus& node, const std::string& instance) const;
  bool knows(const std::string& node, const std::string& allocation) const;
  void note_strays(NodeStatus& node, const std::vector<TaskReport>& tasks);
  void add_stray(NodeStatus& node, const TaskReport& report);
  void stop_stray(const std::string& node, const TaskReport& report);
  void release_stray(const std::string& node, const std::string& allocation);
  bool takes_devices_away(const Node& before, const Node& after) const;
  std::vector<std::string> allocations_on(const std::string& node) const;

  // --- load (desk_load.cpp) ---
  void load_job(const JobRow& row);
  void adopt(LiveJob& live);

  std::int64_t next_seq();

  DeskOptions options_;
  FindEnded find_ended_;
  std::unique_ptr<Engine> engine_;
  Instant now_;
  std::unordered_map<std::int64_t, LiveJob> jobs_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> dependents_;
  std::map<std::string, TenantRow> tenants_;  // by id, active ones
  std::map<std::string, NodeStatus> nodes_;
  std::unordered_map<std::string, std::int64_t> allocations_;  // of processes, to their job
  std::vector<Effect> effects_;                                // to be worked off
  bool settling_ = false;

  std::int64_t last_seq_ = 0;
  std::uint64_t last_event_ = 0;
  std::uint64_t turn_ = 0;
  std::int64_t total_jobs_ = 0;
  std::int64_t preemptions_ = 0;
  std::uint64_t reports_ = 0;
  std::array<std::uint64_t, 7> entered_{};
  std::vector<double> queue_waits_s_;
  std::array<std::int64_t, 7> counts_{};

  Batch batch_;
  std::vector<Outgoing> orders_;
  std::vector<EventRow> events_;
  std::vector<std::int64_t> touched_jobs_;
  std::set<std::string> touched_tenants_;
  std::set<std::string> touched_nodes_;
};

}  // namespace gs
