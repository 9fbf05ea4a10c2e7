#include "drivers/kubernetes/teller.hpp"

#include <deque>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "wire/kube/encode.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr const char* kManager = "gpu-scheduler";  // of the fields that we own
constexpr const char* kNews = "news";

// What is in no namespace has its events in "default".
ApiRequest creation_of(const Event& event) {
  const std::string& ns = event.about.ns;
  return create_object(events(), ns.empty() ? "default" : ns, encode_event(event));
}

ObjectReference pod_of(const Note& note) {
  return {"v1", "Pod", note.pod.ns, note.pod.name, note.pod.uid, {}};
}

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

  void put_news(const Note& note) {
    if (stopped) return;
    if (news.size() >= options.most_news) news.pop_front();
    news.emplace_back(note, clock());
    go_on();
  }

  void go_on() {
    while (may_begin() && !order.empty()) {
      const std::string key = std::move(order.front());
      order.pop_front();
      ApiRequest request = std::move(waiting.at(key));
      waiting.erase(key);
      begin(key, request);
    }
    if (may_begin() && !news.empty() && !under_way.contains(kNews)) {
      const auto [note, at] = std::move(news.front());
      news.pop_front();
      begin(kNews, creation_of(event_about(pod_of(note), false, note.reason, note.message, at)));
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

  bool may_begin() const {
    return !stopped && std::ssize(under_way) < options.at_a_time && left > 0;
  }

  void begin(const std::string& key, const ApiRequest& request) {
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

  Event event_about(const ObjectReference& object, bool warning, const std::string& reason,
                    const std::string& message, Instant at) const {
    Event event;
    event.about = object;
    event.name = event_name(event.about, reason, message);
    event.reason = reason;
    event.action = warning ? "Scheduling" : "Binding";
    event.note = message;
    event.warning = warning;
    event.at = at;
    event.controller = options.controller;
    event.instance = options.instance;
    return event;
  }

  Api& api;
  const TellerOptions options;
  const Clock clock;
  std::unordered_map<std::string, ApiRequest> waiting;  // by object and kind of words
  std::deque<std::string> order;
  // Of what went well; one after the other, so that a busy server gets few.
  std::deque<std::pair<Note, Instant>> news;
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
  if (note.warning) return note_about(pod_of(note), true, note.reason, note.message);
  impl_->put_news(note);
}

void Teller::note_about(const ObjectReference& object, bool warning, const std::string& reason,
                        const std::string& message) {
  impl_->put("event/" + object.uid + "/" + reason,
             creation_of(impl_->event_about(object, warning, reason, message, impl_->clock())));
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
