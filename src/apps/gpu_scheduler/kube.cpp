#include "apps/gpu_scheduler/kube.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "apps/gpu_scheduler/device_naming_flag.hpp"
#include "apps/gpu_scheduler/log_flags.hpp"
#include "apps/gpu_scheduler/own_cluster.hpp"
#include "apps/gpu_scheduler/wall_clock.hpp"
#include "base/log.hpp"
#include "drivers/kubernetes/elector.hpp"
#include "drivers/kubernetes/scheduler.hpp"
#include "drivers/rest/bodies.hpp"
#include "net/http_server.hpp"
#include "wire/clock_json.hpp"
#include "wire/secret_file.hpp"

namespace gs {
namespace {

constexpr std::size_t kMostWaiting = 100;  // pods that are listed

struct Flags {
  std::string kubeconfig, context;
  std::vector<std::string> scheduler_names;
  std::optional<kube::DeviceNaming> device_naming;
  bool kubelet_chooses = false;
  std::string config;
  bool leader_elect = true;
  bool leases = true;
  std::string lease_namespace;
  std::string leader_lease;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;
  LogFlags log;
};

// The machine, or the pod, and something that a second process there does not have.
std::string own_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host, random(), random());
}

class Kube {
 public:
  explicit Kube(Flags flags) : flags_(std::move(flags)), identity_(own_identity()) {}

  Status start();
  void look();  // now and then, by the main thread
  void say_trouble();
  void stop();

 private:
  Status read_config();
  void follow(bool does);
  std::string trouble() const;
  void make_elector();
  Status listen();
  HttpResponse answer(const HttpRequest& request);
  HttpResponse explain(const HttpRequest& request);
  HttpResponse status();
  HttpResponse not_leading() const;

  const Flags flags_;
  const std::string identity_;
  kube::SchedulerConfig config_;
  Metrics metrics_;
  EventLoop loop_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<kube::Elector> elector_;  // there before anybody can ask; nothing: no election
  std::mutex mutex_;                        // of scheduler_, against the HTTP server's thread
  std::unique_ptr<kube::Scheduler> scheduler_;
  std::unique_ptr<HttpServer> http_;
  std::atomic<bool> leads_{false};
  bool led_ = false;     // when look() looked last
  std::string trouble_;  // as it was said last
};

Status Kube::read_config() {
  if (!flags_.config.empty()) {
    Result<std::string> text = read_text_file(flags_.config);
    if (!text) return text.error();
    Result<kube::SchedulerConfig> config = kube::scheduler_config_of_yaml(*text);
    if (!config) return invalid(flags_.config + ": " + config.error().message);
    config_ = std::move(*config);
  }
  if (!flags_.scheduler_names.empty()) config_.scheduler_names = flags_.scheduler_names;
  if (!flags_.lease_namespace.empty()) config_.lease_namespace = flags_.lease_namespace;
  if (!flags_.leader_lease.empty()) config_.leader_lease = flags_.leader_lease;
  config_.leases = config_.leases && flags_.leases;
  config_.device_naming = flags_.device_naming.value_or(config_.device_naming);
  if (!flags_.leader_elect) return ok_status();
  Result<std::string> lease = kube::leader_lease_of(config_);
  if (!lease) return lease.error();
  config_.leader_lease = std::move(*lease);
  return ok_status();
}

Status Kube::start() {
  if (Status read = read_config(); !read) return read;
  Result<std::unique_ptr<kube::Api>> api =
      connect_own_cluster({flags_.kubeconfig, flags_.context}, loop_, metrics_);
  if (!api) return api.error();
  api_ = std::move(*api);
  if (flags_.leader_elect) make_elector();
  if (Status listening = listen(); !listening) return listening;
  if (elector_ != nullptr)
    elector_->start();
  else
    leads_ = true;
  return ok_status();
}

void Kube::make_elector() {
  kube::ElectorOptions options;
  options.name_space = config_.lease_namespace;
  options.name = config_.leader_lease;
  options.identity = identity_;
  elector_ = std::make_unique<kube::Elector>(
      *api_, std::move(options),
      kube::Elector::Callbacks{[this] { leads_ = true; },
                               [this](const std::string& why) {
                                 log_warn("the lead is lost", {{"why", why}});
                                 leads_ = false;
                               }});
}

// Who stands by follows the cluster, to take over at once. What it knows then may be a moment old:
// GPUs are not given twice because of their leases. Without these it begins with a new look.
void Kube::look() {
  say_trouble();
  const bool leads = leads_;
  if (led_ && !leads) follow(false);
  if (scheduler_ == nullptr && (leads || config_.leases)) follow(true);
  if (!led_ && leads) {
    log_info("leading", {{"identity", identity_}});
    scheduler_->lead();
  }
  led_ = leads;
}

void Kube::follow(bool does) {
  const std::lock_guard lock(mutex_);
  scheduler_.reset();
  if (!does) return;
  scheduler_ = std::make_unique<kube::Scheduler>(
      *api_,
      kube::SchedulerOptions{
          config_, identity_, flags_.leader_elect,
          kube::Given{!flags_.scheduler_names.empty(), flags_.device_naming.has_value()},
          flags_.kubelet_chooses},
      wall_clock);
  scheduler_->start();
}

std::string Kube::trouble() const {
  std::string what = elector_ != nullptr ? elector_->trouble() : std::string{};
  const std::string other = scheduler_ != nullptr ? scheduler_->trouble() : std::string{};
  if (!what.empty() && !other.empty()) what += "; ";
  return what + other;
}

// Once for each.
void Kube::say_trouble() {
  const std::string now = trouble();
  if (now == trouble_) return;
  trouble_ = now;
  if (!now.empty()) log_warn("something is missing in the cluster", {{"what", now}});
}

void Kube::stop() {
  if (http_ != nullptr) http_->stop();
  {
    const std::lock_guard lock(mutex_);
    scheduler_.reset();
  }
  if (elector_ != nullptr) {
    std::promise<void> stopped;
    elector_->stop([&] { stopped.set_value(); });
    stopped.get_future().wait_for(std::chrono::seconds(3));
  }
  if (api_ != nullptr) {
    api_->stop();
    loop_.finish();
  }
  elector_.reset();
  api_.reset();
}

// ---------------------------------------------------------------- its own page

Status Kube::listen() {
  HttpServerOptions options;
  options.bind = flags_.bind;
  options.port = flags_.port;
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(
      options,
      [this](std::shared_ptr<Exchange> exchange) { exchange->answer(answer(exchange->request)); });
  if (!server) return server.error();
  http_ = std::move(*server);
  log_info("health, metrics and explanations",
           {{"address", fmt::format("http://{}:{}", flags_.bind, http_->port())}});
  return ok_status();
}

HttpResponse Kube::answer(const HttpRequest& request) {
  HttpResponse response;
  if (request.path == "/health") {
    response.body = R"({"status":"healthy"})";
  } else if (request.path == "/ready") {
    const std::lock_guard lock(mutex_);
    const bool waits = !leads_ && scheduler_ == nullptr;
    const bool ready = waits || (scheduler_ != nullptr && scheduler_->is_synced());
    const std::string what = trouble();
    const bool fine = ready && what.empty();
    response.status = fine ? 200 : 503;
    Json body{{"ready", fine}, {"leads", leads_.load()}};
    if (!what.empty()) body["reason"] = what;
    response.body = body.dump();
  } else if (request.path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    MetricsText text("gpu_scheduler");
    metrics_.write(text);
    response.body = text.text();
    const std::lock_guard lock(mutex_);
    if (scheduler_ != nullptr && leads_) response.body += scheduler_->metrics();
  } else if (request.path == "/explain") {
    return explain(request);
  } else if (request.path == "/status") {
    return status();
  } else {
    response.status = 404;
    response.body =
        R"({"error":"there are /health, /ready, /metrics, /status and /explain?pod=NS/NAME"})";
  }
  return response;
}

HttpResponse Kube::explain(const HttpRequest& request) {
  HttpResponse response;
  const std::string* pod = request.parameter("pod");
  if (pod == nullptr) {
    response.status = 400;
    response.body = R"({"error":"pod=NAMESPACE/NAME is missing"})";
    return response;
  }
  const std::lock_guard lock(mutex_);
  if (scheduler_ == nullptr || !leads_) return not_leading();
  Result<Explanation> known = not_found("there is no pod " + *pod + " that waits or runs here");
  scheduler_->ask([&](kube::Desk& desk) { known = desk.explain_name(*pod); });
  if (!known) {
    response.status = 404;
    response.body = Json{{"error", known.error().message}}.dump();
    return response;
  }
  Json body = explanation_body(*known);
  body["pod"] = *pod;
  response.body = body.dump();
  return response;
}

HttpResponse Kube::status() {
  const std::lock_guard lock(mutex_);
  if (scheduler_ == nullptr || !leads_) return not_leading();
  Json body{{"identity", identity_}, {"leads", true}, {"leader", identity_}};
  kube::Overview seen;
  scheduler_->ask([&](kube::Desk& desk) { seen = desk.overview(kMostWaiting); });
  body["nodes"] = {{"total", seen.nodes}, {"ready", seen.ready_nodes}};
  body["gpus"] = {{"total", seen.gpus}, {"free", seen.free_gpus}};
  body["pods"] = {{"bound", seen.bound}, {"binding", seen.binding}, {"waiting", seen.waiting}};
  body["waiting"] = Json::array();
  for (const kube::Overview::Waiting& one : seen.longest)
    body["waiting"].push_back({{"pod", one.pod.ns + "/" + one.pod.name},
                               {"since", time_text(one.since)},
                               {"reason", one.reason}});
  return {200, body.dump(), "application/json", {}};
}

// Only the leader has decided anything. A Service sends every connection to one of us: whoever asks
// again is to come by a new one.
HttpResponse Kube::not_leading() const {
  const std::string leader = elector_ != nullptr ? elector_->leader() : identity_;
  const bool stands_by = !leader.empty() && leader != identity_;
  Json body{{"error", stands_by ? "this scheduler stands by; " + leader + " leads"
                                : "no scheduler leads yet"},
            {"identity", identity_},
            {"leads", false},
            {"leader", leader}};
  return {503, body.dump(), "application/json", {{"Connection", "close"}}};
}

int run(const Flags& flags) {
  set_log(flags.log);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // Two threads do all the work, one after the other: with an arena each, both keep their peaks.
  mallopt(M_ARENA_MAX, 1);
  Kube kube(flags);
  if (Status started = kube.start(); !started) {
    fmt::print(stderr, "gpu-scheduler: {}\n", started.error().message);
    kube.stop();
    return 1;
  }
  for (;;) {
    kube.look();
    const timespec patience{0, 100'000'000};
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal == SIGTERM || signal == SIGINT) break;
  }
  log_info("stopping");
  kube.stop();
  return 0;
}

}  // namespace

void add_kube(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("kube", "Schedule the pods of a Kubernetes cluster that name us");
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "A kubeconfig; without it KUBECONFIG, ~/.kube/config, or the pod's account");
  command->add_option("--context", flags->context, "A context of the kubeconfig");
  command->add_option("--config", flags->config, "A SchedulerConfig (YAML)")
      ->check(CLI::ExistingFile);
  command->add_option("--scheduler-name", flags->scheduler_names,
                      "Names by which pods ask for us; may be given several times");
  add_device_naming_flag(*command, flags->device_naming);
  command->add_flag(
      "--kubelet-chooses", flags->kubelet_chooses,
      "Device plugins choose the devices of pods with a limit of nvidia.com/gpu: keep "
      "pods that are told their devices off nodes where such pods are, and such pods "
      "off theirs");
  command->add_flag("--leader-elect,!--no-leader-elect", flags->leader_elect,
                    "One of several schedulers leads, the others stand by (default)");
  command
      ->add_option("--leader-elect-lease", flags->leader_lease,
                   "The Lease by which one leads (gpu-scheduler, or like the first of other names)")
      ->check([](const std::string& name) {
        const Status status = kube::check_leader_lease(name);
        return status ? std::string{} : status.error().message;
      });
  command->add_flag("--leases,!--no-leases", flags->leases,
                    "A Lease for every GPU that is given out (default)");
  command->add_option("--lease-namespace", flags->lease_namespace,
                      "Where leases lie (gpu-scheduler)");
  command->add_option("--bind", flags->bind, "Address of health, metrics and explanations")
      ->capture_default_str();
  command->add_option("--port", flags->port, "Its port; 0: any that is free")
      ->capture_default_str();
  add_log_flags(*command, flags->log);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace gs
