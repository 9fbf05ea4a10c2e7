// Desk: what the API server says, in the engine's words, and what the engine decides, in
// Kubernetes' words. It owns the engine.
//
// No thread, clock or I/O: one thread calls it, `now` comes with begin(). A turn is begin(), any
// number of objects and results, perhaps a cycle(), and take(): orders for the binder and teller.
// Until synced() objects are only kept: who sees half of the pods would give out GPUs twice, and
// who stands by for another scheduler has nothing to decide.
//
// A *unit* is one job of the engine: a pod by itself, or all pods of a gang, one slot each.
//
// Invariants:
// - a pod is in at most one slot, a slot has at most one pod;
// - a place that the engine gave a slot is given back exactly once: when its pod has gone, when it
//   could not be bound, or when no pod came for it;
// - between Bind and its result a slot keeps its pod and its place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "drivers/kubernetes/device_choosers.hpp"
#include "drivers/kubernetes/orders.hpp"
#include "drivers/kubernetes/pod_ask.hpp"
#include "drivers/kubernetes/pod_rules.hpp"
#include "drivers/kubernetes/shared_node.hpp"
#include "drivers/kubernetes/status_mirror.hpp"
#include "drivers/kubernetes/volumes.hpp"
#include "engine/engine.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/lease.hpp"
#include "wire/kube/pod.hpp"
#include "wire/kube/policy.hpp"
#include "wire/kube/tenant.hpp"

namespace gs::kube {

// Of what others use. No namespace and no GpuTenant can have this name.
inline constexpr const char* kOthersTenant = ":others";

// Pods that a node's agent has seen on devices: uid to ids.
using DevicesInUse = std::map<std::string, std::vector<int>>;

PodName name_of(const Pod& pod);

struct DeskOptions {
  Config config;
  std::vector<std::string> levels;  // of nodes' network paths, outermost first
  std::vector<std::string> scheduler_names = {"gpu-scheduler", "topology-aware-scheduler"};
  DeviceNaming naming = DeviceNaming::Index;
  bool leases = true;
  // Device plugins choose the devices of pods with limits: these, and pods that are told their
  // devices, stay off each other's nodes.
  bool kubelet_chooses = false;
  bool alone = false;  // leader election is on: nobody but us works on our pods
  // A gang's place is kept so long for a pod that its controller has to make anew.
  Duration member_timeout = seconds(60);
  // Somebody else's lease on a pod that is not bound is broken after so long.
  Duration lease_patience = seconds(10);
  Duration first_backoff = seconds(1), max_backoff = seconds(60);
};

// The cluster in a few figures, and who waits.
struct Overview {
  int nodes = 0, ready_nodes = 0;
  int gpus = 0, free_gpus = 0;              // that can be used
  int bound = 0, binding = 0, waiting = 0;  // pods of ours
  struct Waiting {
    PodName pod;
    Instant since;
    std::string reason;
  };
  std::vector<Waiting> longest;  // of those that wait, the oldest first
};

class Desk {
 public:
  // What a pod asks for; asked again whenever something that it refers to has changed.
  using AskOf = std::function<PodAsk(const Pod&)>;

  Desk(DeskOptions options, AskOf ask_of);

  // --- the turn ---
  void begin(Instant now);
  bool wants_cycle() const;
  void cycle();
  std::optional<Instant> next_wake() const;
  std::vector<Order> take();

  // --- what the API server says ---
  void put(Pod pod);
  void remove_pod(const std::string& uid);
  // In the engine's words, as if nobody but us used it.
  void put_node(SharedNode node, DevicesInUse in_use);
  void remove_node(const std::string& name);
  void put(const Lease& lease);
  void remove_lease(const std::string& name);
  // False: nothing but its status has changed.
  bool put(const GpuTenant& tenant);
  void put_broken_tenant(const std::string& name, const std::string& uid, std::string error);
  void remove_tenant(const std::string& name);
  void put_namespace(const std::string& name, const Labels& labels);
  // What a GpuClaim shows. What it asks for comes with the pods that name it.
  void put_claim(const std::string& ns, const std::string& name, const std::string& uid,
                 ClaimStatus shown);
  void remove_claim(const std::string& ns, const std::string& name);
  void put(PersistentVolumeClaim claim);
  void remove_volume_claim(const std::string& ns, const std::string& name);
  void put(PersistentVolume volume);
  void remove_volume(const std::string& name);
  void put(StorageClass storage_class);
  void remove_storage_class(const std::string& name);
  void put(PodDisruptionBudget budget);
  void remove_budget(const std::string& key);
  // What another configuration says; nodes come anew after it.
  Status configure(const Config& config, std::vector<std::string> levels,
                   std::vector<std::string> scheduler_names, DeviceNaming naming);
  void reconsider(const std::string& uid);  // what this pod refers to has changed
  void synced();

  // --- what came of orders ---
  void done(const BindDone& result);

  // --- looking ---
  const Engine& engine() const { return *engine_; }
  Instant now() const { return now_; }
  const Pod* pod(const std::string& uid) const;
  bool is_ours(const Pod& pod) const;  // names us as its scheduler
  Result<Explanation> explain(const std::string& uid);
  Result<Explanation> explain_name(const std::string& name);  // "namespace/name"
  Overview overview(std::size_t most_waiting) const;

 private:
  enum class Stage : std::uint8_t {
    Waiting,  // has no place, or no pod for it
    Binding,  // ordered
    Bound,    // its pod is bound to its place
    Done,     // its pod has ended well, or is not needed any more
  };

  struct Slot {
    TaskRef task;
    std::string pod;  // uid; empty: none (any more)
    Stage stage = Stage::Waiting;
    std::optional<TaskPlace> place;  // that the engine gave it
    bool stop = false;               // the engine wants it back
    Instant empty_since;
    std::string pin;  // node that this plan ties it to; empty: none
  };

  struct Unit {
    std::string id;    // of the engine's job
    std::string gang;  // "namespace/name"; empty: a pod by itself
    int min = 1;       // members without which it does not start
    TopologyWish topology;
    std::vector<SharedRequest> groups;  // as the pods ask, without marks
    std::vector<std::string> families;  // by group; empty: no rule concerns it
    std::vector<Slot> slots;
    Instant untie_at;
    Duration tie_pause;
    Instant retry_at;  // while it is held
    Duration backoff;
  };

  struct Family {
    int number = 0;
    int users = 0;                                       // groups of units
    std::optional<RuleBook> book;                        // nothing: its set was made for one plan
    std::uint64_t version = 0;                           // of the rules when its sets were made
    std::map<std::string, std::set<std::string>> marks;  // the nodes that have each
  };

  struct PodRecord {
    Pod pod;
    PodAsk ask;
    bool ours = false;
    Chooser chooser = Chooser::Nobody;
    bool gone = false;     // from the API server; kept until its Bind has a result
    bool evicted = false;  // the binder asks for it until it is gone
    std::string unit;      // empty: none
    std::size_t slot = 0;
    std::optional<TaskPlace> place;    // where it is bound
    std::optional<Resources> charged;  // what it takes of its node as somebody else's
    Resources resized;  // what it takes there beyond what the engine holds for it; may be negative
    std::string nominated_node;
    std::unique_ptr<const Tell> told;  // none: nothing yet
    Instant event_at;                  // of the last event that told it
    Duration told_pause;
    std::optional<Instant> tell_at;
  };

  struct GangRecord {
    std::set<std::string> members;  // all pods of it that may still count
    std::set<std::string> pods;     // of these, alive and in no unit
    std::string unit;               // empty: not whole yet
    bool assembles = false;         // its unit ends, and its pods come back one by one
  };

  struct ClaimRecord {
    std::set<std::string> pods;  // that use it
    StatusMirror<ClaimStatus> status;
  };
  using ClaimKey = std::pair<std::string, std::string>;  // namespace, name

  struct GpuTenantRecord {
    std::optional<Tenant> wanted;  // as the last one that could be read says; nothing: deleted
    std::string spec_text;
    std::string unreadable;  // why the newest can't be read
    std::string problem;     // why the engine does not have it as it is wanted
    bool in_force = false;   // the engine has it with its limits
    StatusMirror<TenantStatus> status;
  };

  struct NodeRecord {
    SharedNode node;  // as if nobody but us used it
    DevicesInUse in_use;
    Resources used_by_others;
    std::set<std::string> pods;  // bound here and alive
    std::set<std::string> marks;
    bool in_engine = false;
    std::string error;  // why the engine does not take it
  };

  // Of a Lease, what we need of it: there may be as many as GPUs.
  struct LeaseRecord {
    std::string uid;  // empty: known by name only
    std::string node;
    int gpu = -1;
    std::vector<GpuHolder> holders;
    std::string pod;     // "namespace/name" that it was made for
    Instant seen;        // unchanged since
    bool wrong = false;  // names a pod that does not have this GPU
    Instant ordered;     // when a Release or Break of it was ordered last
  };

  // A GPU that somebody else has, or an instance of one.
  struct Hold {
    int gpu = -1;         // -1: whichever has such an instance
    std::string profile;  // of MIG; empty: the whole GPU
    int start = -1;       // of the instance; -1: not known
    auto operator<=>(const Hold&) const = default;
  };

  struct Blocker {
    std::string node;
    Hold hold;
    std::string job;  // of the engine; empty: the device is still taken
  };

  struct BudgetRecord {
    PodDisruptionBudget budget;
    std::set<std::string> units;  // that it keeps
  };

  struct BindRecord {
    std::string unit;
    std::vector<std::size_t> slots;
  };

  // --- engine (desk.cpp) ---
  Status tell(const Command& command);  // its effects wait for settle()
  void take_in(Effects effects);
  void settle();
  void on(const StartTasks& effect);
  void on(const StopTasks& effect);
  void on(const NominateTasks& effect);
  void on(const JobChanged& effect);
  Slot* find_slot(const TaskRef& task);
  Slot* slot_of(const PodRecord& record);
  std::string title_of(const std::string& job) const;  // as people know it

  // --- pods (desk_pods.cpp) ---
  void look_at(PodRecord& record);
  void ask(PodRecord& record);
  void leave_claim(PodRecord& record);
  // It waits in a unit: does it still ask for the same?
  void ask_again(PodRecord& record, bool relabelled);
  void consider(PodRecord& record);  // an unbound pod of ours: into a unit, if it can
  void adopt(PodRecord& record);     // a bound pod: its place is taken
  void form_adopted(PodRecord& record);
  TaskRequest held_by(const PodRecord& record) const;
  bool adopt_member(PodRecord& record);
  void step_out(PodRecord& record);
  void leave(PodRecord& record);
  std::vector<std::string> pods_by_age() const;  // first those that are bound

  // --- tenants (desk_tenants.cpp) ---
  void tenant_seen(GpuTenantRecord& record, const std::string& uid, TenantStatus shown);
  void apply_tenants();
  void apply(const std::string& name, GpuTenantRecord& record);
  const TenantRecord* engine_tenant(const std::string& name) const;
  static bool is_idle(const TenantRecord& tenant);
  void settle_tenants();
  Status admit_to(const std::string& tenant, bool runs);
  static std::string words_about(const GpuTenantRecord& record);
  TenantStatus status_of(const std::string& name, const GpuTenantRecord& record) const;
  std::optional<Instant> tenants_due() const;
  void tell_tenants();

  // --- units (desk_units.cpp); units end in dissolve() only, when the engine's job has ended ---
  Job job_of(const Unit& unit, const PodRecord& first) const;  // without groups
  Status enter(const Unit& unit, const PodRecord& first);
  std::string new_unit_id();
  void form_single(PodRecord& record);
  void refuse(PodRecord& record, std::string message);
  // members of gangs (desk_members.cpp)
  void join_gang(PodRecord& record);
  bool is_awaited(const Unit& unit, const GangRecord& gang) const;
  bool follow_up(Unit& unit, Slot& slot);
  void leave_gang(PodRecord& record);
  void forget_if_empty(const std::string& gang);
  void form_gang(const std::string& key);
  int gather(const std::string& key, const PodRecord& first);
  bool take_along(PodRecord& stray);
  void fill(Unit& unit, std::size_t index, PodRecord& record);
  static bool has_begun(const Unit& unit);  // something of it has, or had, a place
  void count_members(Unit& unit);
  static void rank_arrived_first(Unit& unit);
  void slot_empties(Unit& unit, Slot& slot, bool succeeded);
  void close(Unit& unit, Slot& slot);
  void check_members();
  void hold(Unit& unit, bool back_off);
  void release_held(Unit& unit);
  void dissolve(const std::string& id);

  // --- rules between pods (desk_rules.cpp) ---
  Family& add_family(const std::string& key);
  std::string family_of(const PodRecord& record, const std::vector<const Pod*>& fellows);
  bool is_of_another_family(const PodRecord& record) const;
  void leave_family(const std::string& key);
  void forget_families(const Unit& unit);
  void set_mark(const std::string& mark, std::set<std::string>& nodes, std::set<std::string> now);
  void mark_nodes(Family& family, std::set<std::string> nodes);
  std::set<std::string> nodes_like(const LabelTerms& terms) const;
  void refresh_families();
  void refresh(Family& family);
  bool rules_its_members(const Unit& unit) const;
  TaskRequest marked(TaskRequest request, const std::string& key);
  void regroup(Unit& unit);
  std::string tie(const Unit& unit, const Slot& slot, const std::string& key,
                  const std::vector<PodRules::Beside>& tied);
  std::vector<std::size_t> admit(Unit& unit, const std::vector<std::size_t>& slots);
  void turn_back(Unit& unit, const std::vector<std::size_t>& good);
  void step_aside(Unit& unit, Slot& slot);
  void start_over(Unit& unit, const std::string& why);
  static std::string tied_key(const Unit& unit, const std::string& node);
  void solve_turned_back();  // desk_gangs.cpp
  static bool is_whole(const Unit& unit);
  void solve(Unit& unit);
  std::size_t try_beside(Unit& unit, const std::vector<std::size_t>& tried,
                         const std::optional<RuleBook>& book, std::set<std::string>& made);
  void reenter(Unit& unit);
  void untie_stuck();
  static bool runs(const Unit& unit);
  bool is_under_way(const Unit& unit) const;

  // --- volumes, who chooses devices, and all rules together (desk_node_sets.cpp) ---
  void volumes_changed();
  void ask_volumes(PodRecord& record);
  Chooser chooser_of(const PodRecord& record) const;
  std::uint64_t rules_version() const;
  std::optional<RuleBook> book_of(const Pod& pod, const std::vector<const Pod*>& fellows) const;
  std::set<std::string> nodes_for(const RuleBook& book, const LabelTerms& terms) const;
  std::set<std::string> nodes_beside(const RuleBook& book,
                                     const std::vector<PodRules::Beside>& tied);
  bool may_stand(const Pod& pod, const std::string& node);
  void count_in(const Pod& pod, const std::string& node);
  void count_out(const std::string& uid);
  std::string rule_words(const PodRecord& record);

  // --- disruption budgets (desk_budgets.cpp) ---
  void refresh_budgets();
  std::set<std::string> guarded_by(const PodDisruptionBudget& budget) const;
  void change_guard(const std::string& id, int by);
  void touch_budgets(const PodRecord& record);
  static bool looks_for_a_place(const Unit& unit);
  void touch_guards(const Unit& unit);

  // --- binding (desk_bind.cpp) ---
  void bind_ready(Unit& unit, std::vector<std::size_t> slots);
  void bind(Unit& unit, std::vector<std::size_t> slots);
  std::vector<GpuShare> parts_of(const GpuRequest& request, const PodPlace& place) const;
  void evict(PodRecord& record, const std::string& reason, const std::string& message);
  void bound(Unit& unit, Slot& slot);
  void not_bound(Unit& unit, Slot& slot, const PodBound& result);
  void give_back(Slot& slot, Outcome outcome);

  // --- nodes (desk_nodes.cpp) ---
  void touch_node(const std::string& name) { dirty_nodes_.insert(name); }
  void offer_ports(const Pod& pod);
  void put_dirty_nodes();
  void lose_node(const std::string& name);
  bool is_being_bound_to(const std::string& node) const;
  void forget_places(const std::string& name);
  void lose_gangs(const std::string& name);
  void look_at_newly_used();

  // --- what others have (desk_others.cpp) ---
  void charge(PodRecord& record);
  void charge_anew(PodRecord& record);
  void discharge(PodRecord& record);
  void follow_resize(PodRecord& record);
  void set_resized(PodRecord& record, const Resources& now);
  void look_at_users(const NodeRecord& node);
  std::vector<int> devices_of(const PodRecord& record) const;
  std::vector<MigPlace> instances_of(const PodRecord& record) const;
  bool is_cut(const std::string& node, int gpu) const;
  static std::vector<Hold> holds_in(const TaskPlace& place);
  std::vector<Hold> holds_of(const PodRecord& record) const;
  void block(const std::string& key, const std::string& node, std::vector<Hold> holds);
  std::optional<AdoptTask> room_for(const Blocker& blocker) const;
  bool is_of(std::uint32_t profile, const Hold& hold) const;
  bool is_in_the_way(const Allocation& place, const Hold& hold) const;
  void yield_to(const Blocker& blocker);
  void stand(const std::string& key);
  void stand_waiting();
  void stand_again(const std::string& job);
  void unblock(const std::string& key);

  // --- leases (desk_leases.cpp) ---
  bool holds(const std::string& uid, const LeaseRecord& lease) const;
  void judge(const std::string& name, LeaseRecord& lease);
  void judge_leases_of(const std::string& node);
  bool lease_taken(const std::string& node, int gpu, const std::string& holder);
  void look_later_at_leases(const std::string& uid, const TaskPlace& place);
  void check_leases();
  void order_lease_gone(LeaseRecord& lease, const std::string& uid);
  void release_leases(const PodRecord& record, const TaskPlace& place);

  // --- words (desk_tell.cpp) ---
  void will_tell(PodRecord& record);
  void tell_waiting();
  void say(PodRecord& record);
  void retract(PodRecord& record);
  std::string nominated_to(const PodRecord& record);
  Tell words_for(const PodRecord& record);
  void touch_claim(const PodRecord& record);
  void tell_claims();
  void tell_claim(const ClaimKey& key);
  ClaimStatus claim_status(const ClaimRecord& claim) const;
  bool is_told_by_another(const ClaimKey& key) const;

  DeskOptions options_;
  AskOf ask_of_;
  std::unique_ptr<Engine> engine_;
  Instant now_;
  bool synced_ = false;
  std::unordered_map<std::string, PodRecord> pods_;  // by uid
  std::vector<Pod> ended_before_;                    // before synced()
  std::map<std::string, GangRecord> gangs_;          // by "namespace/name"
  std::unordered_map<std::string, Unit> units_;      // by id
  std::map<std::string, NodeRecord> nodes_;
  std::map<std::string, LeaseRecord> leases_;  // by name
  std::map<ClaimKey, ClaimRecord> claims_;
  std::map<std::uint64_t, BindRecord> binds_;             // without a result yet
  std::map<std::string, std::vector<Blocker>> blockers_;  // by key
  std::set<std::string> waiting_blockers_;                // for a device to be free
  std::set<std::string> dirty_nodes_;
  std::set<std::string> leaving_nodes_;  // gone, but for Binds under way
  std::set<std::string> newly_used_;     // nodes that a pod was just bound to, or found on
  std::set<std::string> ports_;  // amounts of host ports that some pod has named: nodes have them
  std::map<std::string, GpuTenantRecord> tenants_;  // by name
  std::set<std::string> dirty_tenants_;
  std::set<std::string> unsettled_tenants_;  // wait until no job is left of them
  bool tenants_changed_ = false;             // or something that their figures are made of
  Instant tenants_told_;
  std::optional<Instant> tenants_again_;  // whether what was told shows by then
  std::set<ClaimKey> dirty_claims_;
  std::set<std::pair<Instant, ClaimKey>> claim_looks_;  // whether what was told shows by then
  std::set<std::string> wrong_leases_;
  std::set<std::string> held_;                         // units
  std::set<std::string> hollow_;                       // units with an empty slot
  std::set<std::pair<Instant, std::string>> retries_;  // pods to look at again
  std::set<std::pair<Instant, std::string>> tell_at_;  // pods that have to be told something
  PodRules rules_;
  Volumes volumes_;
  DeviceChoosers choosers_;
  std::set<std::string> volume_waiters_;    // pods that wait for something of their claims
  std::map<std::string, Family> families_;  // by key
  std::set<int> free_numbers_;              // of families that are no more
  int last_number_ = 0;
  std::set<std::string> ruled_waiting_;  // units with a family and, perhaps, a slot without a place
  std::set<std::string> tied_;           // units with pins that have not started
  std::set<std::string> unsolved_;       // gangs whose plan was turned back
  int turned_back_ = 0;                  // plans, in the last round
  std::uint64_t seen_rules_ = 0;         // version at the end of the last cycle
  std::map<std::string, BudgetRecord> budgets_;  // by "namespace/name"
  std::set<std::string> dirty_budgets_;
  std::map<std::string, int> guards_;  // of units that are the last to leave: budgets
  Effects effects_;
  std::vector<Order> orders_;
  std::uint64_t last_bind_ = 0;
  std::uint64_t last_unit_ = 0;
  std::uint64_t last_blocker_ = 0;
  bool settling_ = false;
  bool plan_is_old_ = false;  // something was to start by now, and somebody takes longer
};

}  // namespace gs::kube
