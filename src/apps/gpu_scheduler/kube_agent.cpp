#include "apps/gpu_scheduler/kube_agent.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <signal.h>

#include "apps/gpu_scheduler/node_eyes.hpp"
#include "apps/gpu_scheduler/own_cluster.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "drivers/kubernetes/node_pods.hpp"
#include "drivers/kubernetes/node_reporter.hpp"
#include "net/http_server.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/node_status.hpp"
#include "wire/yaml_text.hpp"

namespace gs {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{1000}, kSignalEvery{100};
constexpr std::chrono::seconds kPodsPatience{10};  // then without what the watch would tell
constexpr std::chrono::seconds kHangsAfter{60};    // a look that takes longer never ends

// As people and other machines read it: when the clock is set, heartbeats follow.
Instant time_of_day() {
  return Instant{
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count()};
}

class KubeAgent {
 public:
  explicit KubeAgent(const agent::Options& options)
      : options_(options), eyes_(options, [this] { news_ = true; }) {
    if (options.heartbeat_ms > 0) heartbeat_ = gs::milliseconds(options.heartbeat_ms);
  }

  Status start();
  void look();  // now and then, by the main thread
  void stop();

 private:
  Status connect();
  Status listen();
  HttpResponse answer(const HttpRequest& request) const;
  std::string metrics_text() const;

  const agent::Options options_;
  Duration heartbeat_ = seconds(30);
  std::atomic<bool> news_{false}, pods_changed_{true};
  NodeEyes eyes_;
  Metrics metrics_;
  EventLoop loop_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<kube::NodePods> pods_;
  std::unique_ptr<kube::NodeReporter> reporter_;
  Steady::time_point started_ = Steady::now(), next_look_;
  std::atomic<Steady::rep> looked_{Steady::now().time_since_epoch().count()};
  mutable std::mutex mutex_;
  kube::GpuNodeStatus seen_;  // guarded by mutex_
  std::unique_ptr<HttpServer> http_;
};

Status KubeAgent::connect() {
  kube::ApiOptions api_options;
  api_options.connections = 4;
  api_options.for_ordinary = 3;
  api_options.user_agent = std::string(kube::kAgentManager) + "/" + kVersion;
  Result<std::unique_ptr<kube::Api>> api = connect_own_cluster(
      {options_.kube.kubeconfig, options_.kube.context}, loop_, metrics_, std::move(api_options));
  if (!api) return api.error();
  api_ = std::move(*api);
  return ok_status();
}

Status KubeAgent::start() {
  if (Status opened = eyes_.open(); !opened) return opened;
  if (Status connected = connect(); !connected) return connected;
  const std::string& node = options_.kube.node_name;
  pods_ = std::make_unique<kube::NodePods>(*api_, node, [this] {
    pods_changed_ = true;
    news_ = true;
  });
  pods_->start();
  kube::NodeReporterOptions report;
  report.node = node;
  report.heartbeat = heartbeat_;
  reporter_ = std::make_unique<kube::NodeReporter>(*api_, std::move(report), time_of_day);
  return listen();
}

void KubeAgent::look() {
  const Steady::time_point now = Steady::now();
  if (!news_.exchange(false) && now < next_look_) return;
  next_look_ = now + kLookEvery;
  const auto pods = pods_->list();
  // Without the pods all GPUs would look free for a moment whenever an agent starts.
  if (pods || now > started_ + kPodsPatience) {
    kube::GpuNodeStatus seen =
        eyes_.look(pods.value_or(std::vector<kube::NodePod>{}), pods_changed_.exchange(false));
    {
      const std::lock_guard lock(mutex_);
      seen_ = seen;
    }
    reporter_->offer(std::move(seen));
  }
  looked_ = Steady::now().time_since_epoch().count();
}

void KubeAgent::stop() {
  if (http_ != nullptr) http_->stop();
  reporter_.reset();
  if (pods_ != nullptr) pods_->stop();
  if (api_ != nullptr) {
    api_->stop();
    loop_.finish();
  }
  pods_.reset();
  api_.reset();
}

// ---------------------------------------------------------------- its own page

Status KubeAgent::listen() {
  HttpServerOptions options;
  options.bind = options_.kube.bind;
  options.port = options_.kube.port;
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(
      options,
      [this](std::shared_ptr<Exchange> exchange) { exchange->answer(answer(exchange->request)); });
  if (!server) return server.error();
  http_ = std::move(*server);
  log_info("health and metrics",
           {{"address", fmt::format("http://{}:{}", options.bind, http_->port())}});
  return ok_status();
}

HttpResponse KubeAgent::answer(const HttpRequest& request) const {
  HttpResponse response;
  if (request.path == "/health") {
    const auto ago = Steady::now().time_since_epoch().count() - looked_;
    const bool lives = Steady::duration(ago) < kHangsAfter;
    response.status = lives ? 200 : 503;
    response.body = lives ? R"({"status":"healthy"})"
                          : R"({"status":"unhealthy","problem":"the driver does not answer"})";
  } else if (request.path == "/ready") {
    const kube::NodeReport report = reporter_->report();
    const bool is_fresh =
        report.written && time_of_day() - *report.written < gs::milliseconds(3 * heartbeat_.ms);
    response.status = is_fresh ? 200 : 503;
    Json body = {{"ready", is_fresh}, {"node", options_.kube.node_name}};
    if (!report.problem.empty()) body["problem"] = report.problem;
    response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  } else if (request.path == "/metrics") {
    response.content_type = kMetricsContentType;
    response.body = metrics_text();
  } else {
    response.status = 404;
    response.body = R"({"error":"there are /health, /ready and /metrics"})";
  }
  return response;
}

std::string KubeAgent::metrics_text() const {
  kube::GpuNodeStatus seen;
  {
    const std::lock_guard lock(mutex_);
    seen = seen_;
  }
  const kube::NodeReport report = reporter_->report();
  MetricsText text("gpu_scheduler");
  const auto each_gpu = [&](const char* name, const char* help, auto value) {
    text.family(name, "gauge", help);
    for (const kube::Device& device : seen.devices)
      text.sample(value(device),
                  {{"gpu", std::to_string(device.gpu.index)}, {"uuid", device.gpu.uuid}});
  };
  each_gpu("agent_gpu_healthy", "1: the GPU is healthy", [](const kube::Device& device) {
    return device.gpu.health == Health::Healthy ? 1.0 : 0.0;
  });
  each_gpu("agent_gpu_temperature_celsius", "How warm it is", [](const kube::Device& device) {
    return static_cast<double>(device.gpu.temperature_c);
  });
  each_gpu("agent_gpu_pods", "Pods that use it",
           [](const kube::Device& device) { return static_cast<double>(device.in_use_by.size()); });
  text.family("agent_reports_total", "counter", "GpuNodeStatus was written, and why");
  text.sample(static_cast<double>(report.changes), {{"why", "change"}});
  text.sample(static_cast<double>(report.heartbeats), {{"why", "heartbeat"}});
  text.family("agent_report_failures_total", "counter", "GpuNodeStatus could not be written");
  text.sample(static_cast<double>(report.failures));
  text.family("agent_report_timestamp_seconds", "gauge", "When it was last written; 0: never");
  text.sample(report.written ? static_cast<double>(report.written->ms) / 1000.0 : 0.0);
  metrics_.write(text);
  return text.text();
}

// ---------------------------------------------------------------- the command

int print_document(const agent::Options& options) {
  NodeEyes eyes(options, [] {});
  if (Status opened = eyes.open(); !opened) {
    fmt::print(stderr, "gpu-scheduler agent: {}\n", opened.error().message);
    return 2;
  }
  const Json document = Json::parse(kube::encode_node_status(eyes.look({}, true)));
  fmt::print("{}", options.kube.json ? document.dump(2) + "\n" : yaml_text(document));
  return 0;
}

std::string name_of_host(const agent::Options& options) {
  std::string name = agent::machine_under(options.sysfs_root).hostname;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

int run_kube_agent(const agent::Options& asked) {
  agent::Options options = asked;
  if (options.kube.node_name.empty()) options.kube.node_name = name_of_host(options);
  if (options.kube.dry_run) return print_document(options);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  KubeAgent agent(options);
  if (Status started = agent.start(); !started) {
    fmt::print(stderr, "gpu-scheduler agent: {}\n", started.error().message);
    agent.stop();
    return started.error().code == ErrorCode::InvalidArgument ? 2 : 1;
  }
  for (;;) {
    agent.look();
    const timespec patience{0, std::chrono::nanoseconds(kSignalEvery).count()};
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal == SIGTERM || signal == SIGINT) break;
  }
  log_info("stopping");
  agent.stop();
  return 0;
}

}  // namespace gs
