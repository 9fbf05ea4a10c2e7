// Keeps what we show to the API server fresh: tokens in files rotate, those of exec plugins expire.
//
// bearer() may be called from any thread; the rest belongs to the loop. Files are read on the loop,
// a plugin runs on a thread of its own. What could not be renewed stays as it is and is tried
// again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "drivers/kubernetes/credentials.hpp"
#include "net/event_loop.hpp"

namespace gs::kube {

class IdentityKeeper {
 public:
  // Called on the loop when certificates have changed.
  using TlsChanged = std::function<void(const TlsOptions&)>;

  // `identity`: as it is now.
  IdentityKeeper(EventLoop& loop, ClusterAccess access, Identity identity, TlsChanged tls_changed);
  ~IdentityKeeper();  // waits for a plugin that runs
  IdentityKeeper(const IdentityKeeper&) = delete;
  IdentityKeeper& operator=(const IdentityKeeper&) = delete;

  void start();
  void stop();

  // "Bearer ..."; null: there is no token.
  std::shared_ptr<const std::string> bearer() const;
  // The server did not know us: looks for something newer, soon but not in a hurry.
  void refused();
  // Whether there can be something newer.
  bool may_change() const;

 private:
  void plan();
  void renew();
  void take(Result<Identity> found);

  EventLoop& loop_;
  const ClusterAccess access_;
  const TlsChanged tls_changed_;
  Identity identity_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // of what is posted to the loop
  std::thread plugin_;
  bool is_running_ = false;
  int failures_ = 0;
  EventLoop::Clock::time_point renewed_;
  EventLoop::TimerId timer_ = 0;
  mutable std::mutex mutex_;  // of bearer_
  std::shared_ptr<const std::string> bearer_;
};

}  // namespace gs::kube
