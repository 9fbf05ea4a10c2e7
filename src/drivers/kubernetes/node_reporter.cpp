#include "drivers/kubernetes/node_reporter.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <random>
#include <utility>

#include "base/log.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/node.hpp"
#include "wire/kube/node_status.hpp"

namespace gs::kube {
namespace {

const Resource& node_statuses() {
  static const Resource resource{"gpu.scheduling", "v1", "gpunodestatuses", false};
  return resource;
}

constexpr int kRefusals = 3;
constexpr const char* kNoDefinition =
    "the cluster knows no GpuNodeStatus (gpu.scheduling/v1): its CustomResourceDefinition is "
    "missing; `kubectl apply -f api/crds`, or the chart with crds.install=true, brings it";

bool is_news_of_heat(int written, int now) {
  const int step = std::abs(now - written);
  return step >= kTemperatureStepC || (step > kFlickerC && (now >= kHotC) != (written >= kHotC));
}

}  // namespace

bool is_news(const GpuNodeStatus& written, const GpuNodeStatus& now) {
  if (written.total != now.total || written.fabric != now.fabric || written.source != now.source ||
      written.devices.size() != now.devices.size())
    return true;
  for (std::size_t i = 0; i < now.devices.size(); ++i) {
    Device as_before = now.devices[i];
    const Device& before = written.devices[i];
    if (is_news_of_heat(before.gpu.temperature_c, as_before.gpu.temperature_c)) return true;
    as_before.gpu.temperature_c = before.gpu.temperature_c;
    if (as_before != before) return true;
  }
  return false;
}

struct NodeReporter::Impl : std::enable_shared_from_this<NodeReporter::Impl> {
  Impl(Api& the_api, NodeReporterOptions the_options, Clock the_clock)
      : api(the_api),
        options(std::move(the_options)),
        clock(std::move(the_clock)),
        rng(std::random_device{}()) {}

  Api& api;
  const NodeReporterOptions options;
  const Clock clock;

  // --- the loop's
  Rng rng;
  std::optional<GpuNodeStatus> offered, written;
  GpuNodeStatus sent;
  EventLoop::Clock::time_point offered_at;
  bool is_made = false;         // the object, with this owner
  std::string owner, seen_uid;  // the Node's UID as it was written, and as it was last read
  bool is_busy = false, is_heartbeat_due = true, is_stopped = false;
  EventLoop::TimerId heartbeat_timer = 0, retry_timer = 0;
  int failures_in_row = 0;

  mutable std::mutex mutex;
  NodeReport told;  // guarded by mutex

  void consider();
  void read_node();
  void node_read(const ApiAnswer& answer);
  void write_object();
  void write_status(bool may_make);
  void stale();
  void succeed();
  void fail(const std::string& problem, Duration wait_at_least);
  void call(ApiRequest request, std::function<void(const ApiAnswer&)> then);
};

void NodeReporter::Impl::call(ApiRequest request, std::function<void(const ApiAnswer&)> then) {
  request.again = Again::Never;  // the next try carries what is known by then
  request.timeout = seconds(10);
  api.call(std::move(request),
           [self = shared_from_this(), then = std::move(then)](const ApiAnswer& answer) {
             if (!self->is_stopped) then(answer);
           });
}

void NodeReporter::Impl::consider() {
  if (is_stopped || is_busy || retry_timer != 0 || !offered) return;
  if (!is_heartbeat_due && written && !is_news(*written, *offered)) return;
  if (EventLoop::Clock::now() - offered_at > std::chrono::milliseconds(options.stale.ms))
    return stale();
  is_busy = true;
  // The Node is looked at with each heartbeat: a new one of the same name is a new owner.
  if (is_heartbeat_due || !is_made) return read_node();
  write_status(true);
}

// Whoever looks at the GPUs does so no more: a heartbeat would be a lie.
void NodeReporter::Impl::stale() {
  const std::lock_guard lock(mutex);
  if (std::exchange(told.problem, "the GPUs don't answer") != told.problem)
    log_warn("no heartbeat: nobody has described the GPUs for a while", {{"node", options.node}});
}

void NodeReporter::Impl::read_node() {
  ApiRequest request = read_object(nodes(), "", options.node);
  request.query.emplace_back("resourceVersion", "0");  // out of the server's memory
  call(std::move(request), [this](const ApiAnswer& answer) { node_read(answer); });
}

void NodeReporter::Impl::node_read(const ApiAnswer& answer) {
  if (!answer.ok() && answer.error->reason == ApiReason::NotFound)
    return fail("there is no node " + options.node + " in the cluster (--node-name)", {});
  const bool may_not = !answer.ok() && answer.error->reason == ApiReason::Forbidden;
  if (may_not && is_made) return write_status(true);
  // A server that has just started knows no roles yet; only who goes on to refuse means it.
  if (!answer.ok() && !(may_not && failures_in_row >= kRefusals))
    return fail(answer.error->message, answer.error->retry_after);
  seen_uid.clear();
  if (may_not) {
    log_warn("the node may not be read; its GpuNodeStatus will outlive it",
             {{"error", answer.error->message}});
  } else if (const Result<Node> node = decode_node(answer.body); node) {
    seen_uid = node->meta.uid;
  }
  if (is_made && owner == seen_uid) return write_status(true);
  write_object();
}

void NodeReporter::Impl::write_object() {
  GpuNodeStatus object;
  object.node_name = options.node;
  if (!seen_uid.empty()) object.meta.owners = {{"v1", "Node", options.node, seen_uid}};
  call(apply_object(node_statuses(), "", options.node, encode_node_status(object), kAgentManager),
       [this](const ApiAnswer& answer) {
         if (!answer.ok() && answer.error->reason == ApiReason::NotFound)
           return fail(kNoDefinition, {});
         if (!answer.ok()) return fail(answer.error->message, answer.error->retry_after);
         is_made = true;
         owner = seen_uid;
         write_status(false);
       });
}

void NodeReporter::Impl::write_status(bool may_make) {
  sent = *offered;
  sent.heartbeat = clock();
  ApiRequest request = of_subresource(
      apply_object(node_statuses(), "", options.node, encode_node_status(sent), kAgentManager),
      "status");
  call(std::move(request), [this, may_make](const ApiAnswer& answer) {
    if (answer.ok()) return succeed();
    const bool is_gone = answer.error->reason == ApiReason::NotFound;
    if (is_gone && may_make) return write_object();
    fail(answer.error->message, answer.error->retry_after);
  });
}

void NodeReporter::Impl::succeed() {
  const bool changed = !written || is_news(*written, sent);
  written = std::move(sent);
  is_busy = false;
  is_heartbeat_due = false;
  if (std::exchange(failures_in_row, 0) > 0) log_info("GpuNodeStatus is written again");
  {
    const std::lock_guard lock(mutex);
    told.written = written->heartbeat;
    told.problem.clear();
    ++(changed ? told.changes : told.heartbeats);
  }
  // Not all nodes that were started together beat together.
  const std::int64_t part = options.heartbeat.ms / 10;
  api.loop().cancel(heartbeat_timer);
  heartbeat_timer = api.loop().after(milliseconds(options.heartbeat.ms - rng.between(0, part)),
                                     [self = shared_from_this()] {
                                       self->is_heartbeat_due = true;
                                       self->consider();
                                     });
  consider();
}

void NodeReporter::Impl::fail(const std::string& problem, Duration wait_at_least) {
  is_busy = false;
  is_heartbeat_due = true;  // look at everything again
  const Duration wait = std::max(
      wait_at_least, backoff(options.first_wait, options.longest_wait, ++failures_in_row, rng));
  bool is_new = false;
  {
    const std::lock_guard lock(mutex);
    ++told.failures;
    is_new = std::exchange(told.problem, problem) != problem;
  }
  if (is_new)
    log_warn("GpuNodeStatus can't be written", {{"node", options.node}, {"why", problem}});
  retry_timer = api.loop().after(wait, [self = shared_from_this()] {
    self->retry_timer = 0;
    self->consider();
  });
}

NodeReporter::NodeReporter(Api& api, NodeReporterOptions options, Clock clock)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(clock))) {}

NodeReporter::~NodeReporter() {
  impl_->api.loop().post([impl = impl_] {
    impl->is_stopped = true;
    impl->api.loop().cancel(impl->heartbeat_timer);
    impl->api.loop().cancel(impl->retry_timer);
  });
}

void NodeReporter::offer(GpuNodeStatus now) {
  impl_->api.loop().post([impl = impl_, now = std::move(now)]() mutable {
    impl->offered = std::move(now);
    impl->offered_at = EventLoop::Clock::now();
    impl->consider();
  });
}

NodeReport NodeReporter::report() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->told;
}

}  // namespace gs::kube
