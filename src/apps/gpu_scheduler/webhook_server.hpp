// The webhook as a process: its listeners, the cluster it asks, and the thread that looks after its
// certificates.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/claim_book.hpp"
#include "drivers/webhook/certificate_files.hpp"
#include "drivers/webhook/certificate_keeper.hpp"
#include "drivers/webhook/reviewer.hpp"
#include "drivers/webhook/webhook.hpp"
#include "drivers/webhook/webhook_metrics.hpp"
#include "net/event_loop.hpp"
#include "net/http_server.hpp"

namespace gs {

struct WebhookFlags {
  std::string kubeconfig, context;
  std::string bind = "0.0.0.0";
  std::uint16_t port = 8443;
  std::uint16_t health_port = 8081;  // 0: none
  std::string tls_cert, tls_key;
  bool self_signed = false;
  std::string secret = "gpu-scheduler-webhook-tls";
  std::string name_space;  // empty: the one that we run in
  std::string service = "gpu-scheduler-webhook";
  std::vector<std::string> extra_names;
  std::string configuration = "gpu-scheduler-webhook";
  std::uint64_t authority_life_s = 3650 * 86'400ULL;
  std::uint64_t certificate_life_s = 365 * 86'400ULL;
  std::uint64_t check_every_s = 10;
  std::uint64_t shutdown_delay_s = 5;
  webhook::ReviewerOptions review;
};

class WebhookServer {
 public:
  explicit WebhookServer(WebhookFlags flags);
  ~WebhookServer();  // as stop()
  WebhookServer(const WebhookServer&) = delete;
  WebhookServer& operator=(const WebhookServer&) = delete;

  // With certificates in files it listens when this returns. With certificates of its own it begins
  // to listen as soon as it has them; until then it is alive and not ready.
  Status start();
  // Not ready any more; serves on, and sends those who are connected elsewhere.
  void drain();
  void stop();

 private:
  Status connect();
  Status listen_for_probes();
  Status use(const webhook::KeyPair& pair);
  webhook::ClusterReply ask(const webhook::ClusterRequest& request);
  webhook::KeeperOptions keeper_options() const;
  void look_again_and_again();
  void looked(const Status& status);
  std::string why_not_ready();

  const WebhookFlags flags_;
  Metrics metrics_;
  webhook::WebhookMetrics counts_{metrics_};
  EventLoop loop_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<kube::ClaimBook> claims_;
  std::unique_ptr<webhook::Reviewer> reviewer_;
  std::unique_ptr<webhook::Pages> pages_;
  std::unique_ptr<webhook::CertificateKeeper> keeper_;
  std::function<Status(Instant)> look_;  // after the certificates, once
  std::unique_ptr<HttpServer> probes_;
  std::thread looking_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<HttpServer> https_;  // there is one as soon as there is a certificate
  std::string not_ready_ = "there is no certificate yet";
  std::string problem_;  // of the last look; empty: none
  bool draining_ = false, stopping_ = false;
};

}  // namespace gs
