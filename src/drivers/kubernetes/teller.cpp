#include "drivers/kubernetes/teller.hpp"

#include <deque>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "wire/kube/encode.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr const char* kManager = "gpu-scheduler";  // of the fields that we own

}  // namespace

struct Teller::Impl : std::enable_shared_from_this<Teller::Impl> {
  Impl(Api& the_api, TellerOptions the_options, Clock the_clock)
      : api(the_api), options(std::move(the_options)), clock(std::move(the_clock)) {}

  void put(const std::string& key, ApiRequest request) {
    if (stopped || (!waiting.contains(key) && waiting.size() >= options.most_waiting)) return;
    const bool is_new = !waiting.contains(key);
    waiting[key] = std::move(request);
    if (is_new && !under_way.contains(key)) order.push_back(key);
    go_on();
  }

  void go_on() {
    while (!stopped && std::ssize(under_way) < options.at_a_time && !order.empty() && left > 0) {
      const std::string key = std::move(order.front());
      order.pop_front();
      ApiRequest request = std::move(waiting.at(key));
      waiting.erase(key);
      under_way.insert(key);
      --left;
      api.call(request, [self = shared_from_this(), key, request](const ApiAnswer& answer) {
        self->under_way.erase(key);
        // For when the server is back; newer words are better ones.
        if (answer.error && answer.error->reason == ApiReason::NotAnswered)
          self->waiting.try_emplace(key, request);
        if (self->waiting.contains(key)) self->order.push_back(key);
        self->go_on();
      });
    }
    if (left < options.per_second && !refilling && !stopped) {
      refilling = true;
      api.loop().after(seconds(1), [self = shared_from_this()] {
        self->refilling = false;
        self->left = self->options.per_second;
        self->go_on();
      });
    }
  }

  Api& api;
  const TellerOptions options;
  const Clock clock;
  std::unordered_map<std::string, ApiRequest> waiting;  // by object and kind of words
  std::deque<std::string> order;
  // Requests travel side by side: the later word about an object must not overtake the earlier one.
  std::unordered_set<std::string> under_way;
  int left = options.per_second;
  bool refilling = false;
  bool stopped = false;
};

Teller::Teller(Api& api, TellerOptions options, Clock clock)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(clock))) {}
Teller::~Teller() { impl_->stopped = true; }

void Teller::tell(const Tell& words) {
  PodCondition condition{words.reason, words.message, impl_->clock(), words.nominated_node};
  ApiRequest request =
      of_subresource(patch_object(pods(), words.pod.ns, words.pod.name, PatchType::Strategic,
                                  encode_unscheduled(condition)),
                     "status");
  impl_->put("condition/" + words.pod.uid, std::move(request));
  note({words.pod, true, "FailedScheduling", words.message});
}

void Teller::note(const Note& note) {
  note_about({"v1", "Pod", note.pod.ns, note.pod.name, note.pod.uid, {}}, note.warning, note.reason,
             note.message);
}

// What is in no namespace has its events in "default".
void Teller::note_about(const ObjectReference& object, bool warning, const std::string& reason,
                        const std::string& message) {
  Event event;
  event.about = object;
  event.name = event_name(event.about, reason, message);
  event.reason = reason;
  event.action = warning ? "Scheduling" : "Binding";
  event.note = message;
  event.warning = warning;
  event.at = impl_->clock();
  event.controller = impl_->options.controller;
  event.instance = impl_->options.instance;
  impl_->put(
      "event/" + object.uid + "/" + reason,
      create_object(events(), object.ns.empty() ? "default" : object.ns, encode_event(event)));
}

void Teller::tell_claim(const TellClaim& told) {
  const Resource claims{"gpu.scheduling", "v1", "gpuclaims", true};
  impl_->put(
      "claim/" + told.ns + "/" + told.name,
      of_subresource(apply_object(claims, told.ns, told.name,
                                  encode_claim_status(told.ns, told.name, told.status), kManager),
                     "status"));
}

void Teller::tell_tenant(const TellTenant& told) {
  const Resource tenants{"gpu.scheduling", "v1", "gputenants", false};
  impl_->put("tenant/" + told.name,
             of_subresource(apply_object(tenants, {}, told.name,
                                         encode_tenant_status(told.name, told.status), kManager),
                            "status"));
  if (!told.is_news) return;
  note_about({kGpuApi, "GpuTenant", {}, told.name, told.uid, {}}, !told.status.accepted,
             told.status.accepted ? "TenantAccepted" : "TenantRefused", told.status.message);
}

}  // namespace gs::kube
