// Scheduler: the one writer of the Kubernetes world. Reflectors put what they see into its inbox;
// its thread drains the inbox into the desk, runs at most one cycle, and hands the orders to the
// binder and the teller on the Api's loop, whose results come back through the inbox.
//
// It begins to decide when it leads and every reflector has seen its whole list. Until then it
// follows the cluster and writes nothing, so that it can take over at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "drivers/kubernetes/binder.hpp"
#include "drivers/kubernetes/desk.hpp"
#include "drivers/kubernetes/live_config.hpp"
#include "drivers/kubernetes/objects.hpp"
#include "drivers/kubernetes/reflector.hpp"
#include "drivers/kubernetes/teller.hpp"
#include "drivers/kubernetes/topology_metrics.hpp"

namespace gs::kube {

struct SchedulerOptions {
  SchedulerConfig config;
  std::string identity;  // unique among schedulers
  bool alone = true;     // leader election is on
  Given given;
  bool kubelet_chooses = false;  // the devices of pods with limits, on nodes with a device plugin
};

class Scheduler {
 public:
  using Clock = std::function<Instant()>;

  Scheduler(Api& api, SchedulerOptions options, Clock clock);
  ~Scheduler();  // as stop()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void start();
  void lead();  // from any thread
  // Nothing more is decided; what is under way at the API server ends by itself. Not from the loop.
  void stop();

  bool is_synced() const;  // every list has been seen
  // What is missing in the cluster, in one sentence; empty: nothing. From any thread.
  std::string trouble() const;
  // Runs f on the writer's thread, between turns, and waits for it. Not from the loop.
  void ask(const std::function<void(Desk&)>& f);
  std::string metrics();  // in Prometheus' text format; as ask()

 private:
  using News = std::function<void()>;
  struct Source {
    std::unique_ptr<Reflector> reflector;
    bool is_synced = false;
    bool is_ours = false;  // of a custom resource that comes with us
  };
  enum class Need { Always, IfServed };

  void post(News news);
  void run();
  void turn(std::vector<News> news);
  void begin_if_ready();
  void bind_ended(const BindDone& done);
  void pod_seen(Pod pod);
  void carry_out(std::vector<Order> orders);
  void follow(Resource resource, std::string name_space, std::string selector,
              Reflector::Handler handler, Need need = Need::Always, std::string name = {});
  void follow_pods();
  void follow_nodes();
  void follow_claims();
  void follow_leases();
  void follow_workloads();
  void follow_namespaces();
  void follow_volumes();
  void follow_pod_groups();
  void follow_budgets();
  void follow_config();
  void follow_config_map(const std::string& ns, ConfigSource source);
  void take_config(ConfigSource source, const ObjectReference& object,
                   const Result<SchedulerConfig>& config);
  void drop_config(ConfigSource source);
  void apply_config();
  void say_configs();
  void write_config_words(const ObjectReference& object, bool is_good,
                          const ConfigStanding& standing, const std::string& before);
  void put_node(SharedNode node);
  void reconsider(const Uids& uids);

  Api& api_;
  const SchedulerOptions options_;
  const Clock clock_;
  LiveConfig live_config_;
  Objects objects_;
  Desk desk_;
  TopologyMetrics metrics_;
  struct ConfigRecord {
    ObjectReference object;
    std::string error;  // why it can't be read
    std::string told;   // to whoever wrote it, since its last change
  };
  std::map<ConfigSource, ConfigRecord> configs_;
  bool leads_ = false;
  std::size_t not_listed_ = 0;      // sources
  std::unique_ptr<Binder> binder_;  // of the loop
  std::unique_ptr<Teller> teller_;  // of the loop
  std::vector<std::unique_ptr<Source>> sources_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<News> inbox_;
  bool synced_ = false;
  std::atomic<bool> has_lease_namespace_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gs::kube
