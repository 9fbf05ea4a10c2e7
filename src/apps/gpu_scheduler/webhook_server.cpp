#include "apps/gpu_scheduler/webhook_server.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "apps/gpu_scheduler/own_cluster.hpp"

namespace gs {
namespace {

constexpr Duration kClaimPatience = seconds(2);  // the API server waits for us, 10 s by default
constexpr Duration kAskPatience = seconds(10);
constexpr Duration kBetweenFiles = seconds(2);
constexpr Duration kAfterFailure = seconds(2);
constexpr int kIdleTimeoutMs = 120'000;  // the API server keeps connections for 90 s
constexpr int kReadTimeoutMs = 15'000;

// Certificates are about the time of day, also after somebody has set the clock.
Instant time_of_day() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Instant{std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

Duration whole_seconds(std::uint64_t count) { return seconds(static_cast<std::int64_t>(count)); }

}  // namespace

WebhookServer::WebhookServer(WebhookFlags flags) : flags_(std::move(flags)) {}
WebhookServer::~WebhookServer() { stop(); }

Status WebhookServer::start() {
  if (Status connected = connect(); !connected) return connected;
  pages_ =
      std::make_unique<webhook::Pages>(*reviewer_, metrics_, [this] { return why_not_ready(); });
  if (Status listening = listen_for_probes(); !listening) return listening;
  const auto use_pair = [this](const webhook::KeyPair& pair) { return use(pair); };
  if (flags_.self_signed) {
    keeper_ = std::make_unique<webhook::CertificateKeeper>(
        keeper_options(), [this](const webhook::ClusterRequest& request) { return ask(request); },
        use_pair, counts_);
    look_ = [this](Instant now) { return keeper_->look(now); };
  } else {
    auto files =
        std::make_shared<webhook::CertificateFiles>(flags_.tls_cert, flags_.tls_key, use_pair);
    look_ = [files](Instant now) { return files->look(now); };
    if (Status usable = look_(time_of_day()); !usable) return usable;
    looked(ok_status());
  }
  looking_ = std::thread([this] { look_again_and_again(); });
  return ok_status();
}

Status WebhookServer::connect() {
  Result<std::unique_ptr<kube::Api>> api =
      connect_own_cluster({flags_.kubeconfig, flags_.context}, loop_, metrics_);
  if (!api) return api.error();
  api_ = std::move(*api);
  claims_ = std::make_unique<kube::ClaimBook>(*api_, kClaimPatience);
  claims_->start();
  reviewer_ = std::make_unique<webhook::Reviewer>(
      flags_.review,
      [this](const std::string& ns, const std::string& name, webhook::ClaimFound found) {
        claims_->find(ns, name, std::move(found));
      },
      counts_);
  return ok_status();
}

webhook::KeeperOptions WebhookServer::keeper_options() const {
  webhook::KeeperOptions options;
  options.name_space = flags_.name_space.empty() ? api_->name_space() : flags_.name_space;
  options.secret = flags_.secret;
  options.configuration = flags_.configuration;
  options.rotation.names = webhook::service_names(flags_.service, options.name_space);
  options.rotation.names.insert(options.rotation.names.end(), flags_.extra_names.begin(),
                                flags_.extra_names.end());
  options.rotation.authority_life = whole_seconds(flags_.authority_life_s);
  options.rotation.serving_life = whole_seconds(flags_.certificate_life_s);
  return options;
}

webhook::ClusterReply WebhookServer::ask(const webhook::ClusterRequest& request) {
  kube::ApiRequest call = kube::read_path(request.path);
  call.method = request.method;
  call.verb = request.method;
  std::transform(call.verb.begin(), call.verb.end(), call.verb.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  call.body = request.body;
  call.content_type = request.content_type;
  call.again = request.method == "GET" ? kube::Again::Always : kube::Again::IfUndone;
  call.timeout = kAskPatience;
  std::promise<webhook::ClusterReply> promise;
  std::future<webhook::ClusterReply> reply = promise.get_future();
  api_->call(std::move(call), [&promise](kube::ApiAnswer answer) {
    promise.set_value({answer.code, std::move(answer.body),
                       answer.error ? answer.error->message : std::string()});
  });
  return reply.get();
}

// ---------------------------------------------------------------- listening

Status WebhookServer::listen_for_probes() {
  if (flags_.health_port == 0) return ok_status();
  HttpServerOptions options;
  options.bind = flags_.bind;
  options.port = flags_.health_port;
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(
      options,
      [this](const std::shared_ptr<Exchange>& exchange) { pages_->serve_probes(exchange); });
  if (!server) return server.error();
  probes_ = std::move(*server);
  log_info("health and metrics",
           {{"address", fmt::format("http://{}:{}", flags_.bind, probes_->port())}});
  return ok_status();
}

Status WebhookServer::use(const webhook::KeyPair& pair) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return Error{ErrorCode::Unavailable, "it is about to end"};
  if (https_ != nullptr) {
    if (Status renewed = https_->renew_tls(pair.certificate, pair.key); !renewed) return renewed;
  } else {
    HttpServerOptions options;
    options.bind = flags_.bind;
    options.port = flags_.port;
    options.max_body_bytes = webhook::kMaxReviewBytes;
    options.idle_timeout_ms = kIdleTimeoutMs;
    options.read_timeout_ms = kReadTimeoutMs;
    options.tls_certificate = pair.certificate;
    options.tls_key = pair.key;
    Result<std::unique_ptr<HttpServer>> server = HttpServer::start(
        options,
        [this](std::shared_ptr<Exchange> exchange) { pages_->serve(std::move(exchange)); });
    if (!server) return server.error();
    https_ = std::move(*server);
    log_info("admission reviews",
             {{"address", fmt::format("https://{}:{}", flags_.bind, https_->port())},
              {"device_naming", kube::word_of(flags_.review.naming)},
              {"nvidia_visible_devices", flags_.review.nvidia_visible_devices},
              {"kubelet_chooses", flags_.review.kubelet_chooses}});
  }
  const Result<webhook::CertificateFacts> facts = webhook::read_certificate(pair.certificate);
  if (facts) counts_.certificate_expiry.set(static_cast<double>(facts->not_after.ms) / 1000.0);
  counts_.certificate_changes.add();
  log_info("a certificate is in use",
           {{"days", facts ? (facts->not_after - time_of_day()).ms / 86'400'000 : 0}});
  return ok_status();
}

// ---------------------------------------------------------------- certificates

void WebhookServer::look_again_and_again() {
  const Duration between = flags_.self_signed ? whole_seconds(flags_.check_every_s) : kBetweenFiles;
  for (;;) {
    const Status status = look_(time_of_day());
    looked(status);
    const Duration pause = status ? between : std::min(between, kAfterFailure);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(pause.ms), [this] { return stopping_; });
    if (stopping_) return;
  }
}

// Said when it begins and when it ends, not at every look.
void WebhookServer::looked(const Status& status) {
  const std::lock_guard lock(mutex_);
  const std::string problem = status ? std::string() : status.error().message;
  if (!problem.empty() && problem != problem_ && !stopping_)
    log_warn("the certificates can't be looked after", {{"error", problem}});
  if (problem.empty() && !problem_.empty()) log_info("the certificates are looked after again");
  problem_ = problem;
  // Who was ready stays so: what is served is still good.
  if (problem.empty()) not_ready_.clear();
}

std::string WebhookServer::why_not_ready() {
  const std::lock_guard lock(mutex_);
  if (draining_) return "it is about to end";
  if (not_ready_.empty() || problem_.empty()) return not_ready_;
  return problem_;
}

// ---------------------------------------------------------------- the end

void WebhookServer::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  if (https_ != nullptr) https_->drain();
}

// Reviews under way are answered first, while what they ask is still there.
void WebhookServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;  // nothing begins to listen any more
  }
  wake_.notify_all();
  if (https_ != nullptr) https_->stop();
  if (probes_ != nullptr) probes_->stop();
  if (claims_ != nullptr) claims_->stop();
  if (api_ != nullptr) api_->stop();  // ends what the looking thread waits for
  if (looking_.joinable()) looking_.join();
  if (api_ != nullptr) loop_.finish();
  https_.reset();
  probes_.reset();
  claims_.reset();
  api_.reset();
}

}  // namespace gs
