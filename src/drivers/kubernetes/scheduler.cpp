#include "drivers/kubernetes/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <future>

#include "base/check.hpp"
#include "drivers/kubernetes/object_change.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr Duration kLongestNap = seconds(5);

DeskOptions desk_options(const SchedulerOptions& options) {
  DeskOptions desk;
  desk.config = options.config.engine;
  for (const TopologyLevel& level : options.config.levels) desk.levels.push_back(level.name);
  desk.scheduler_names = options.config.scheduler_names;
  desk.naming = options.config.device_naming;
  desk.leases = options.config.leases;
  desk.alone = options.alone;
  desk.kubelet_chooses = options.kubelet_chooses;
  return desk;
}

}  // namespace

Scheduler::Scheduler(Api& api, SchedulerOptions options, Clock clock)
    : api_(api),
      options_(std::move(options)),
      clock_(std::move(clock)),
      live_config_(options_.config, options_.given),
      objects_(options_.config),
      desk_(desk_options(options_), [this](const Pod& pod) { return objects_.ask(pod); }) {
  BinderOptions binder{options_.config.leases, options_.config.lease_namespace, options_.identity};
  binder_ = std::make_unique<Binder>(
      api_, std::move(binder), clock_,
      [this](BindDone done) { post([this, done = std::move(done)] { bind_ended(done); }); },
      [this](const std::string& name) { post([this, name] { desk_.remove_lease(name); }); });
  TellerOptions teller;
  teller.instance = options_.identity;
  teller_ = std::make_unique<Teller>(api_, std::move(teller), clock_);
  follow_nodes();
  follow_pods();
  follow_claims();
  if (options_.config.leases) follow_leases();
  follow_workloads();
  follow_namespaces();
  follow_volumes();
  follow_pod_groups();
  follow_budgets();
  follow_config();
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::start() {
  not_listed_ = sources_.size();
  thread_ = std::thread([this] { run(); });
  for (const auto& source : sources_) source->reflector->start();
}

void Scheduler::lead() {
  post([this] {
    leads_ = true;
    begin_if_ready();
  });
}

void Scheduler::begin_if_ready() {
  if (not_listed_ > 0) return;
  {
    const std::lock_guard lock(mutex_);
    synced_ = true;
  }
  if (!leads_) return log_info("everything has been listed; standing by");
  desk_.synced();
  log_info("everything has been listed; scheduling begins",
           {{"device_naming", word_of(live_config_.in_force().device_naming)},
            {"kubelet_chooses", options_.kubelet_chooses}});
  say_configs();
}

void Scheduler::stop() {
  if (!thread_.joinable()) return;
  // Reflectors, binder and teller live on the loop: they end there.
  std::promise<void> ended;
  api_.loop().post([&] {
    for (const auto& source : sources_) source->reflector->stop();
    binder_.reset();
    teller_.reset();
    ended.set_value();
  });
  ended.get_future().wait();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Scheduler::is_synced() const {
  const std::lock_guard lock(mutex_);
  return synced_;
}

std::string Scheduler::trouble() const {
  for (const auto& source : sources_) {
    const ReflectorFigures figures = source->reflector->figures();
    if (figures.is_synced || figures.trouble.empty()) continue;
    return figures.trouble +
           (source->is_ours ? "; its definitions come with us: kubectl apply -f api/crds" : "");
  }
  const std::string& ns = options_.config.lease_namespace;
  if (options_.config.leases && is_synced() && !has_lease_namespace_)
    return "namespace " + ns + ", where leases of GPUs are kept, does not exist: kubectl create " +
           "namespace " + ns;
  return {};
}

void Scheduler::ask(const std::function<void(Desk&)>& f) {
  std::promise<void> answered;
  post([&] {
    f(desk_);
    answered.set_value();
  });
  answered.get_future().wait();
}

std::string Scheduler::metrics() {
  MetricsText text("topology");
  ask([&](Desk& desk) { metrics_.write(text, desk.engine().cluster()); });
  return text.text();
}

// ---------------------------------------------------------------- the turn

void Scheduler::post(News news) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(news));
  }
  wake_.notify_one();
}

void Scheduler::run() {
  for (;;) {
    std::vector<News> news;
    {
      std::unique_lock lock(mutex_);
      const Instant now = clock_();
      const std::optional<Instant> due = desk_.next_wake();
      const std::int64_t nap =
          due ? std::clamp<std::int64_t>(due->ms - now.ms, 1, kLongestNap.ms) : kLongestNap.ms;
      wake_.wait_for(lock, std::chrono::milliseconds(nap),
                     [&] { return stopping_ || !inbox_.empty(); });
      if (stopping_) return;
      news.swap(inbox_);
    }
    turn(std::move(news));
  }
}

void Scheduler::turn(std::vector<News> news) {
  desk_.begin(clock_());
  for (News& one : news) std::exchange(one, nullptr)();  // what it brought has gone to the desk
  news = {};
  if (desk_.wants_cycle()) {
    const auto begin = std::chrono::steady_clock::now();
    desk_.cycle();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    metrics_.cycle_took(took.count());
  }
  std::vector<Order> orders = desk_.take();
  for (Order& order : orders) {
    if (const auto* evict = std::get_if<Evict>(&order))
      if (const Pod* pod = desk_.pod(evict->pod.uid))
        metrics_.evicted(*pod, evict->reason, desk_.now());
    if (auto* bind = std::get_if<Bind>(&order))
      for (PodPlace& place : bind->pods) {
        place.adapters = objects_.adapters(place);
        if (!place.mig.empty()) place.devices = objects_.instances(place);
      }
  }
  carry_out(std::move(orders));
}

void Scheduler::bind_ended(const BindDone& done) {
  for (const PodBound& result : done.pods)
    metrics_.ended(result, desk_.pod(result.pod.uid), desk_.now());
  desk_.done(done);
}

void Scheduler::pod_seen(Pod pod) {
  if (pod.node_name.empty() && desk_.is_ours(pod))
    metrics_.waits(pod, desk_.now());
  else if (!leads_)
    metrics_.gone(pod.meta.uid);  // somebody else has bound it
  const std::string ended = pod.ended() ? pod.meta.uid : std::string{};
  desk_.put(std::move(pod));
  if (!ended.empty()) reconsider(objects_.forget_pod(ended));
}

void Scheduler::carry_out(std::vector<Order> orders) {
  if (orders.empty()) return;
  api_.loop().post([this, orders = std::move(orders)]() mutable {
    if (binder_ == nullptr) return;
    for (Order& order : orders) {
      if (auto* bind = std::get_if<Bind>(&order)) binder_->bind(std::move(*bind));
      if (const auto* release = std::get_if<Release>(&order)) binder_->release(*release);
      if (const auto* breaks = std::get_if<Break>(&order)) binder_->break_lease(*breaks);
      if (const auto* evict = std::get_if<Evict>(&order)) {
        binder_->evict(*evict);
        teller_->note({evict->pod, true, evict->reason, evict->message});
      }
      if (const auto* words = std::get_if<Tell>(&order)) teller_->tell(*words);
      if (const auto* pod = std::get_if<Retract>(&order)) teller_->retract(*pod);
      if (const auto* note = std::get_if<Note>(&order)) teller_->note(*note);
      if (const auto* claim = std::get_if<TellClaim>(&order)) teller_->tell_claim(*claim);
      if (const auto* tenant = std::get_if<TellTenant>(&order)) teller_->tell_tenant(*tenant);
    }
  });
}

// ---------------------------------------------------------------- what is followed

void Scheduler::follow(Resource resource, std::string name_space, std::string selector,
                       Reflector::Handler handler, Need need, std::string name) {
  auto source = std::make_unique<Source>();
  source->is_ours = resource.group == "gpu.scheduling" || resource.group == "topology.scheduler";
  ReflectorOptions options;
  options.is_optional = need == Need::IfServed;
  options.resource = std::move(resource);
  options.name_space = std::move(name_space);
  options.label_selector = std::move(selector);
  if (!name.empty()) options.field_selector = "metadata.name=" + name;
  Source* raw = source.get();
  source->reflector = std::make_unique<Reflector>(
      api_, std::move(options), [this, raw, handler = std::move(handler)](const ObjectChange& c) {
        if (c.kind != ObjectChange::Kind::Synced) return handler(c);
        if (std::exchange(raw->is_synced, true)) return;
        post([this] {
          --not_listed_;
          begin_if_ready();
        });
      });
  sources_.push_back(std::move(source));
}

void Scheduler::follow_pods() {
  follow(pods(), {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, uid = std::string(change.uid)] {
        metrics_.gone(uid);
        desk_.remove_pod(uid);
        reconsider(objects_.forget_pod(uid));
      });
    Result<Pod> pod = decode_pod(change.object);
    if (!readable(pod, change, "Pod")) return;
    post([this, pod = std::move(*pod)]() mutable { pod_seen(std::move(pod)); });
  });
}

void Scheduler::put_node(SharedNode node) {
  if (!node) return;
  const std::string name = node->name;
  desk_.put_node(std::move(node), objects_.in_use(name));
  reconsider(objects_.concerned_by(name));
}

void Scheduler::follow_nodes() {
  follow(nodes(), {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, name = std::string(change.name)] {
        objects_.remove_node(name);
        desk_.remove_node(name);
      });
    Result<Node> node = decode_node(change.object);
    if (!readable(node, change, "Node")) return;
    post([this, node = std::move(*node)]() mutable { put_node(objects_.put(std::move(node))); });
  });
  const Resource reports{"gpu.scheduling", "v1", "gpunodestatuses", false};
  follow(reports, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post(
          [this, name = std::string(change.name)] { put_node(objects_.remove_node_status(name)); });
    Result<GpuNodeStatus> status = decode_node_status(change.object);
    if (!readable(status, change, "GpuNodeStatus")) return;
    post([this, status = std::move(*status)]() mutable {
      put_node(objects_.put(std::move(status)));
    });
  });
}

void Scheduler::reconsider(const Uids& uids) {
  for (const std::string& uid : uids) desk_.reconsider(uid);
}

void Scheduler::follow_claims() {
  const Resource claims{"gpu.scheduling", "v1", "gpuclaims", true};
  follow(claims, {}, {}, [this](const ObjectChange& change) {
    const std::string ns(change.name_space), name(change.name);
    if (is_end(change))
      return post([this, ns, name] {
        desk_.remove_claim(ns, name);
        reconsider(objects_.remove_claim(ns, name));
      });
    Result<GpuClaim> claim = decode_claim(change.object);
    if (!claim)
      return post([this, ns, name, uid = std::string(change.uid), error = claim.error().message,
                   shown = decode_claim_status(change.object)] {
        desk_.put_claim(ns, name, uid, shown ? *shown : ClaimStatus{});
        reconsider(objects_.put_broken_claim(ns, name, error));
      });
    post([this, claim = std::move(*claim)] {
      desk_.put_claim(claim.meta.ns, claim.meta.name, claim.meta.uid, claim.status);
      reconsider(objects_.put(claim));
    });
  });
}

void Scheduler::follow_leases() {
  follow(leases(), options_.config.lease_namespace, std::string(kManagedLabel) + "=true",
         [this](const ObjectChange& change) {
           if (is_end(change))
             return post([this, name = std::string(change.name)] { desk_.remove_lease(name); });
           Result<Lease> lease = decode_lease(change.object);
           if (!readable(lease, change, "Lease")) return;
           post([this, lease = std::move(*lease)] { desk_.put(lease); });
         });
}

// Of kinds that come with others, those that the cluster serves; later ones are found within
// seconds.
void Scheduler::follow_workloads() {
  for (const WorkloadKind& known : workload_kinds())
    follow(
        {known.group, known.version, known.plural, true}, {}, {},
        [this, kind = known.kind](const ObjectChange& change) {
          if (is_end(change))
            return post([this, uid = std::string(change.uid)] { objects_.remove_workload(uid); });
          Result<Workload> workload = decode_workload(change.object, kind);
          if (!readable(workload, change, kind)) return;
          post([this, workload = std::move(*workload)] { reconsider(objects_.put(workload)); });
        },
        known.built_in ? Need::Always : Need::IfServed);
}

void Scheduler::follow_namespaces() {
  const Resource namespaces{"", "v1", "namespaces", false};
  follow(namespaces, {}, {}, [this](const ObjectChange& change) {
    if (change.name == options_.config.lease_namespace) has_lease_namespace_ = !is_end(change);
    if (is_end(change)) return;
    Result<Namespace> name_space = decode_namespace(change.object);
    if (!readable(name_space, change, "Namespace")) return;
    post([this, ns = std::move(*name_space)] {
      desk_.put_namespace(ns.meta.name, ns.meta.labels);
      reconsider(objects_.put(ns));
    });
  });
  const Resource tenants{"gpu.scheduling", "v1", "gputenants", false};
  follow(tenants, {}, {}, [this](const ObjectChange& change) {
    if (is_end(change))
      return post([this, name = std::string(change.name)] {
        desk_.remove_tenant(name);
        reconsider(objects_.remove_tenant(name));
      });
    Result<GpuTenant> tenant = decode_tenant(change.object);
    if (!readable(tenant, change, "GpuTenant"))
      return post([this, name = std::string(change.name), uid = std::string(change.uid),
                   error = tenant.error().message] { desk_.put_broken_tenant(name, uid, error); });
    post([this, tenant = std::move(*tenant)] {
      if (desk_.put(tenant)) reconsider(objects_.put(tenant));
    });
  });
}

}  // namespace gs::kube
