// An API server in memory with the rules that matter here: optimistic locking, leases that exist
// once, Bindings that are refused when the pod has changed. One desk or several watch it, each with
// a lag of its own; what they order is carried out write by write, so that a scheduler can die, or
// another one act, between any two writes.
//
// After every write it looks: no GPU is held by two bound pods, unless they share it and it has
// compute and memory enough for both. When a scheduler orders pods to be
// bound, it looks whether they may stand there (legality_test.hpp): always by the rules that keep
// pods apart, and by all of them where the scheduler had heard of everything.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/rng.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "drivers/kubernetes/legality_test.hpp"

namespace gs::kube {

inline constexpr const char* kTestNamed = "test/named";  // how many GPUs, without a limit

class World {
 public:
  // `alone`: one of them leads at a time, and the others stand by. `leases`: of GPUs.
  // `kubelet_chooses`: devices of pods with limits.
  explicit World(int schedulers = 1, bool alone = true, bool leases = true,
                 bool kubelet_chooses = false);

  // --- what users, controllers and kubelets do ---
  void add_node(const std::string& name, int gpus, const Labels& labels = {});
  void set_ready(const std::string& name, bool ready);
  void set_health(const std::string& name, std::size_t gpu, Health health);
  void set_model(const std::string& name, const std::string& model);  // of all its GPUs
  void remove_node(const std::string& name);
  std::string add_pod(const std::string& name, int gpus, const std::string& gang = {},
                      int gang_size = 0, const std::string& scheduler = "gpu-scheduler",
                      int priority = 0);
  Pod make_pod(const std::string& name, int gpus, const std::string& gang = {},
               int gang_size = 0) const;
  std::string add(Pod pod);
  // A pod that is to have exactly these GPUs, together with others of its (not empty) group. Its
  // annotation test/pin says them.
  std::string add_pinned(const std::string& name, const std::string& node,
                         const std::vector<int>& gpus, const std::string& group);
  void annotate(const std::string& uid, const std::string& name, const std::string& value);
  void forget_claim(const std::string& uid);  // what the pod asks for can't be read any more
  // A pod without a limit, that is told its devices.
  Pod make_named(const std::string& name, int gpus, const std::string& gang = {},
                 int gang_size = 0) const;
  // A pod that takes a part of one GPU; 0: follows from the other.
  std::string add_shared(const std::string& name, int milli, std::int64_t memory_mib);
  void put(const PodDisruptionBudget& budget);
  void configure(const std::vector<std::string>& levels, const std::vector<std::string>& names,
                 DeviceNaming naming = DeviceNaming::Index);
  void end_pod(const std::string& uid, PodPhase phase);
  void remove_pod(const std::string& uid);
  // As its controller does: beside one that is on its way out, or in the place of one.
  std::string add_follower(const std::string& uid);
  std::string make_anew(const std::string& uid);
  void bind_by_another(const std::string& uid, const std::string& node, std::vector<int> gpus);
  void take_lease(const std::string& node, int gpu, const GpuHolder& holder, bool seen = true);

  // --- time ---
  bool turn();  // all hear, think and write once; false: nothing happened
  void play();  // until nothing happens any more
  void advance(Duration duration);
  void restart(std::size_t scheduler = 0);  // it dies, with all that it had under way
  // Whoever leads dies and stands by anew; this one leads, with what it has heard so far.
  void take_over(std::size_t scheduler);
  // One step of one scheduler: it hears something, thinks, or one of its writes is carried out.
  void step(std::size_t scheduler, Rng& rng);
  void kill_evicted();  // kubelets end what was told to go
  // Whether members of gangs that are told to go are made anew at once.
  void set_controllers(bool on) { controllers_ = on; }

  // --- looking ---
  const Pod& pod(const std::string& uid) const { return pods_.at(uid); }
  bool exists(const std::string& uid) const { return pods_.contains(uid); }
  std::vector<int> devices(const std::string& uid) const;
  const std::map<std::string, Lease>& leases() const { return leases_; }
  const std::map<std::string, Tell>& told() const { return told_; }
  const std::map<std::string, Pod>& pods() const { return pods_; }
  const std::map<std::string, gs::Node>& nodes() const { return nodes_; }
  std::vector<std::string> left_over() const;      // leases whose pod does not have the GPU
  std::vector<std::string> without_lease() const;  // bound pods, one for each GPU that lacks theirs
  std::size_t schedulers() const { return schedulers_.size(); }
  bool alone() const { return alone_; }
  std::vector<Standing> standing() const;  // bound pods
  // Of a pod's gang: its name, and how many pods it has; nothing for a pod by itself.
  static std::optional<std::pair<std::string, int>> gang_of(const Pod& pod);

 private:
  using News = std::function<void(Desk&)>;
  struct Scheduler {
    std::unique_ptr<Desk> desk;
    std::deque<News> news;                     // not heard yet
    std::deque<std::function<void()>> writes;  // not carried out yet
    std::map<std::uint64_t, Bind> binds;       // under way
    std::vector<Pod> stood;                    // bound when it thought last
    std::set<std::string> knew;                // nodes that it knew then
    bool leads = true;
  };
  struct BindState;

  void start(Scheduler& scheduler);
  void tell_all(const News& news);
  void changed(Pod& pod);
  void changed(Lease& lease);
  void changed(const gs::Node& node);
  void delete_lease(const std::string& name);
  bool think(Scheduler& scheduler);
  void carry_out(Scheduler& scheduler, const Order& order);
  void carry_out_bind(Scheduler& scheduler, const Bind& bind);
  void check_rules(const Scheduler& scheduler, const Bind& bind) const;
  std::set<std::string> known_nodes(const Scheduler& scheduler) const;
  void take_leases(const std::shared_ptr<BindState>& state);
  void bind_one(const std::shared_ptr<BindState>& state, std::size_t index);
  void drop_lease(const std::string& node, int gpu, const std::string& uid);
  void give_back(const Lease& lease, const PodPlace& place);
  bool has(const std::string& uid, const std::string& node, int gpu) const;
  void release(const Release& order);
  void check() const;
  bool may_be_together(const std::vector<std::string>& uids) const;

  Instant now_{1'000'000};
  bool alone_;
  bool with_leases_;
  bool kubelet_chooses_;
  bool controllers_ = false;
  int version_ = 0;
  std::map<std::string, Pod> pods_;
  std::map<std::string, gs::Node> nodes_;
  std::map<std::string, Lease> leases_;
  std::map<std::string, Tell> told_;
  std::vector<Scheduler> schedulers_;
};

}  // namespace gs::kube
