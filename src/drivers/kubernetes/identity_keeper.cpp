#include "drivers/kubernetes/identity_keeper.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"

namespace gs::kube {
namespace {

constexpr Duration kReadFilesEvery = seconds(60);
constexpr Duration kLeastPause = seconds(5);  // between two looks
constexpr Duration kPluginTimeout = seconds(60);

std::shared_ptr<const std::string> bearer_of(const Identity& identity) {
  if (identity.token.empty()) return nullptr;
  return std::make_shared<const std::string>("Bearer " + identity.token);
}

Instant wall_clock() {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

}  // namespace

IdentityKeeper::IdentityKeeper(EventLoop& loop, ClusterAccess access, Identity identity,
                               TlsChanged tls_changed)
    : loop_(loop),
      access_(std::move(access)),
      tls_changed_(std::move(tls_changed)),
      identity_(std::move(identity)),
      renewed_(EventLoop::Clock::now() - std::chrono::milliseconds(kLeastPause.ms)),
      bearer_(bearer_of(identity_)) {}

IdentityKeeper::~IdentityKeeper() {
  if (plugin_.joinable()) plugin_.join();
}

void IdentityKeeper::start() { plan(); }

void IdentityKeeper::stop() {
  *is_alive_ = false;
  loop_.cancel(timer_);
}

std::shared_ptr<const std::string> IdentityKeeper::bearer() const {
  const std::lock_guard lock(mutex_);
  return bearer_;
}

bool IdentityKeeper::may_change() const {
  return access_.exec.has_value() || !access_.token_file.empty() ||
         !access_.tls.certificate_file.empty();
}

void IdentityKeeper::plan() {
  loop_.cancel(timer_);
  if (!*is_alive_ || !may_change()) return;
  Duration wait = kReadFilesEvery;
  if (access_.exec) {
    if (!identity_.expires && failures_ == 0) return;  // until the server refuses it
    // A tenth of its life before the end, so that a slow plugin does not make a gap.
    const Duration left = identity_.expires ? *identity_.expires - wall_clock() : milliseconds(0);
    wait = std::max(kLeastPause, milliseconds(left.ms - left.ms / 10));
    if (failures_ > 0) wait = std::min(wait, kLeastPause);
  }
  timer_ = loop_.after(wait, [this] { renew(); });
}

void IdentityKeeper::refused() {
  if (!may_change() || is_running_) return;
  const auto since = EventLoop::Clock::now() - renewed_;
  if (since < std::chrono::milliseconds(kLeastPause.ms)) return;
  renew();
}

void IdentityKeeper::renew() {
  renewed_ = EventLoop::Clock::now();
  loop_.cancel(timer_);
  if (!access_.exec) return take(identify(access_));
  if (is_running_) return;
  if (plugin_.joinable()) plugin_.join();
  is_running_ = true;
  plugin_ = std::thread([this, alive = is_alive_] {
    auto found = std::make_shared<Result<Identity>>(identify(access_, kPluginTimeout));
    loop_.post([this, alive, found] {
      if (!*alive) return;
      is_running_ = false;
      take(std::move(*found));
    });
  });
}

void IdentityKeeper::take(Result<Identity> found) {
  if (!found) {
    ++failures_;
    log_warn("the credentials for the API server could not be renewed",
             {{"error", found.error().message}});
    return plan();
  }
  failures_ = 0;
  const bool has_new_tls = !(found->tls == identity_.tls);
  identity_ = std::move(*found);
  {
    const std::lock_guard lock(mutex_);
    bearer_ = bearer_of(identity_);
  }
  if (has_new_tls) tls_changed_(identity_.tls);
  plan();
}

}  // namespace gs::kube
