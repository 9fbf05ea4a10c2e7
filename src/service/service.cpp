#include "service/service.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"

namespace gs {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Duration kRenewal = milliseconds(1000);
constexpr Duration kRetryLead = milliseconds(500);
constexpr Duration kHousekeeping = minutes(1);
// Under load cycles take no more than this part of the time: 1 of (1 + kOthersShare).
constexpr int kOthersShare = 4;
constexpr std::size_t kManyNodes = 64;
constexpr Duration kViewInterval = milliseconds(100);  // with many nodes

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

const char* reason_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid";
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::QuotaExceeded:
      return "quota";
    case ErrorCode::QueueFull:
      return "queue_full";
    case ErrorCode::AlreadyExists:
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::Unauthenticated:
    case ErrorCode::PermissionDenied:
      return "permission";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::Internal:
      break;
  }
  return "internal";
}

}  // namespace

Service::Service(ServiceOptions options, Store& store, Fleet& fleet, Clock clock)
    : options_(std::move(options)), store_(store), fleet_(fleet), clock_(std::move(clock)) {}

Service::~Service() { stop(); }

void Service::start() {
  thread_ = std::thread([this] { run(); });
}

void Service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Service::post(std::unique_ptr<Work> work) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || inbox_.size() >= options_.inbox) return false;
    first = inbox_.empty();
    inbox_.push_back(std::move(work));
  }
  if (first) wake_.notify_one();
  return true;
}

std::size_t Service::inbox_depth() const {
  const std::lock_guard lock(mutex_);
  return inbox_.size();
}

std::shared_ptr<const ClusterView> Service::view() const {
  const std::lock_guard lock(view_mutex_);
  return view_;
}

void Service::reconfigure(const DeskOptions& options) {
  (void)ask(
      [this, options](Desk& desk) -> Status {
        options_.desk = options;
        desk.reconfigure(options);
        return ok_status();
      },
      [](const Status&) {});
}

// ---------------------------------------------------------------- the writer

std::vector<std::unique_ptr<Service::Work>> Service::wait_for_work() {
  Duration patience = desk_ ? options_.interval : kRetryLead;
  if (desk_) {
    const Instant now = clock_();
    patience = std::min({patience, last_renewal_ + kRenewal - now});
    if (const auto due = desk_->next_wake()) patience = std::min(patience, *due - now);
    // A cycle that was put off is taken up as soon as its share of the time allows.
    if (desk_->wants_cycle())
      patience = std::min(
          patience, milliseconds(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     cycle_ended_ + kOthersShare * cycle_took_ - SteadyClock::now())
                                     .count()));
  }
  std::vector<std::unique_ptr<Work>> works;
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::milliseconds(std::max<std::int64_t>(0, patience.ms)),
                 [&] { return stopping_ || !inbox_.empty(); });
  works.swap(inbox_);
  return works;
}

void Service::run() {
  for (;;) {
    std::vector<std::unique_ptr<Work>> works = wait_for_work();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ && works.empty()) break;
    }
    if (!desk_ && !take_lead()) {
      refuse(works);
      continue;
    }
    turn(std::move(works));
    if (desk_) keep_house();
  }
  drop_lead();
}

void Service::refuse(std::vector<std::unique_ptr<Work>>& works) {
  const Error error{ErrorCode::Unavailable, "this server does not lead; try another one"};
  for (auto& work : works) work->finish(&error);
}

bool Service::take_lead() {
  Result<bool> leads = store_.try_lead();
  if (!leads) log_warn("the store can't be reached", {{"error", leads.error().message}});
  if (!leads || !*leads) return false;
  Result<Loaded> loaded = store_.load();
  if (!loaded) {
    log_error("the store can't be read", {{"error", loaded.error().message}});
    return false;
  }
  const Instant now = clock_();
  const auto begin = SteadyClock::now();
  desk_ = std::make_unique<Desk>(options_.desk,
                                 [this](std::int64_t seq) { return store_.find_job(seq); });
  desk_->load(*loaded, now);
  events_.begin_after(loaded->last_event);
  last_renewal_ = now;
  nodes_changed_ = true;
  log_info("leads", {{"jobs", loaded->jobs.size()},
                     {"tenants", loaded->tenants.size()},
                     {"nodes", loaded->nodes.size()},
                     {"load_s", seconds_since(begin)}});
  leads_ = true;
  return true;
}

void Service::drop_lead() {
  leads_ = false;
  desk_.reset();
  const std::lock_guard lock(view_mutex_);
  auto view = std::make_shared<ClusterView>(*view_);
  view->leads = false;
  view_ = std::move(view);
}

// Cheap cycles run in every turn. Dear ones leave most of the time to those who ask.
bool Service::cycle_is_due() const {
  if (!desk_->wants_cycle()) return clock_() - last_cycle_ >= options_.interval;
  return SteadyClock::now() >= cycle_ended_ + kOthersShare * cycle_took_;
}

// Tried until it is recorded, or another one leads, or we are told to stop: nobody has been told
// anything of this turn, so it may as well not have happened.
Status Service::commit(const Batch& batch, TurnFigures& figures) {
  Duration pause = milliseconds(20);
  for (;;) {
    Status done = store_.commit(batch);
    if (done || done.error().code == ErrorCode::Conflict) return done;
    ++figures.commit_failures;
    log_error("a turn can't be recorded; trying again",
              {{"error", done.error().message}, {"pause_ms", pause.ms}});
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, std::chrono::milliseconds(pause.ms), [&] { return stopping_; }))
      return done;
    pause = std::min(milliseconds(pause.ms * 2), milliseconds(1000));
  }
}

void Service::turn(std::vector<std::unique_ptr<Work>> works) {
  TurnFigures figures;
  figures.asks = works.size();
  auto begin = SteadyClock::now();
  desk_->begin(clock_());
  for (auto& work : works) {
    work->apply(*desk_);
    if (const Error* error = work->refusal()) ++figures.rejections[reason_of(error->code)];
  }
  figures.apply_s = seconds_since(begin);
  if (cycle_is_due()) {
    begin = SteadyClock::now();
    desk_->cycle();
    cycle_ended_ = SteadyClock::now();
    cycle_took_ = cycle_ended_ - begin;
    last_cycle_ = desk_->now();
    figures.cycle_s = seconds_since(begin);
    figures.ran_cycle = true;
  }
  TurnResult result = desk_->take();
  if (!result.batch.empty()) {
    begin = SteadyClock::now();
    if (Status s = commit(result.batch, figures); !s) {
      log_error("leads no more", {{"error", s.error().message}});
      drop_lead();
      refuse(works);
      return;
    }
    figures.commit_s = seconds_since(begin);
  }
  for (const Outgoing& order : result.orders) fleet_.send(order);
  publish(std::move(result.events));
  for (auto& work : works) work->finish(nullptr);
  figures.entered = desk_->take_entered();
  figures.queue_waits_s = desk_->take_queue_waits();
  if (observer_) observer_(figures);
}

void Service::publish(std::vector<EventRow> events) {
  events_.publish(std::move(events));
  const std::uint64_t seen = desk_->engine().cluster().log_end() + desk_->reports();
  nodes_changed_ = nodes_changed_ || seen != seen_nodes_;
  seen_nodes_ = seen;
  std::shared_ptr<const ClusterView> before = view();
  std::shared_ptr<const NodeViews> nodes = before->nodes;
  const bool many = desk_->nodes().size() > kManyNodes;
  if (nodes_changed_ && (!many || desk_->now() - nodes_viewed_ >= kViewInterval)) {
    nodes = std::make_shared<const NodeViews>(node_views(*desk_));
    nodes_viewed_ = desk_->now();
    nodes_changed_ = false;
  }
  auto fresh = std::make_shared<ClusterView>(cluster_view(*desk_, std::move(nodes)));
  fresh->tenants = before->tenants;
  if (desk_->now() - tenants_viewed_ >= kViewInterval) {
    fresh->tenants = std::make_shared<const std::vector<TenantFigures>>(tenant_figures(*desk_));
    tenants_viewed_ = desk_->now();
  }
  const std::lock_guard lock(view_mutex_);
  view_ = std::move(fresh);
}

void Service::keep_house() {
  const Instant now = clock_();
  if (now - last_renewal_ >= kRenewal) {
    Status renewed = store_.renew();
    if (renewed) last_renewal_ = now;
    if (!renewed && renewed.error().code == ErrorCode::Conflict) {
      log_error("another server leads now", {{"error", renewed.error().message}});
      drop_lead();
      return;
    }
  }
  if (now - last_housekeeping_ < kHousekeeping) return;
  Result<std::int64_t> gone = store_.forget(options_.retention, now);
  // More is left: go on soon, but let others have their turns in between.
  const bool more = gone && *gone > 0;
  last_housekeeping_ = more ? now - kHousekeeping + milliseconds(100) : now;
}

}  // namespace gs
