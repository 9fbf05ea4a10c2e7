#include "drivers/kubernetes/teller.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "wire/kube/encode.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr const char* kManager = "gpu-scheduler";  // of the fields that we own
constexpr const char* kNews = "news";
constexpr const char* kWaits = "FailedScheduling";  // as the stock scheduler calls it

// What is in no namespace has its events in "default".
ApiRequest creation_of(const Event& event) {
  const std::string& ns = event.about.ns;
  return create_object(events(), ns.empty() ? "default" : ns, encode_event(event));
}

ObjectReference pod_of(const Note& note) {
  return {"v1", "Pod", note.pod.ns, note.pod.name, note.pod.uid, {}};
}

std::string condition_key(const std::string& uid) { return "condition/" + uid; }
std::string event_key(const std::string& uid, const std::string& reason) {
  return "event/" + uid + "/" + reason;
}

// It says that it could not, or not in time: nobody knows whether it did.
bool had_trouble(const ApiError& error) {
  return error.reason == ApiReason::Unavailable || error.reason == ApiReason::ServerTimeout ||
         error.reason == ApiReason::TooManyRequests;
}

// A request is made when its turn comes: while very many wait, the words alone are kept.
struct Words {
  std::string key;  // object and kind of words
  std::function<ApiRequest()> request;
  bool again = false;  // a repetition: it may wait until nobody has anything new to say
  int tries = 0;
};
using Queue = std::list<Words>;

}  // namespace

struct Teller::Impl : std::enable_shared_from_this<Teller::Impl> {
  Impl(Api& the_api, TellerOptions the_options, Clock the_clock)
      : api(the_api),
        options(std::move(the_options)),
        clock(std::move(the_clock)),
        rng(std::random_device{}()) {}

  void put(Words words) {
    const auto begun = under_way.find(words.key);
    const auto it = waiting.find(words.key);
    const bool is_due = begun != under_way.end() || it != waiting.end();
    if (stopped || (words.again && is_due)) return;
    if (begun != under_way.end()) {
      begun->second.next = std::move(words);
      return;
    }
    if (it != waiting.end() && !it->second->again) {
      *it->second = std::move(words);
      return;
    }
    if (it != waiting.end()) drop(words.key);
    const std::string key = words.key;
    Queue& queue = words.again ? repetitions : order;
    waiting[key] = queue.insert(queue.end(), std::move(words));
    go_on();
  }

  void drop(const std::string& key) {
    if (const auto begun = under_way.find(key); begun != under_way.end())
      begun->second = {{}, false};
    if (waiting.contains(key)) (void)take(key);
  }

  Words take(const std::string& key) {
    const auto it = waiting.find(key);
    Queue& queue = it->second->again ? repetitions : order;
    Words words = std::move(*it->second);
    queue.erase(it->second);
    waiting.erase(it);
    return words;
  }

  void put_news(const Note& note) {
    if (stopped) return;
    if (news.size() >= options.most_news) news.pop_front();
    news.emplace_back(note, clock());
    go_on();
  }

  void go_on() {
    while (may_begin() && !order.empty()) begin(take(order.front().key));
    if (may_begin_news() && !news.empty() && !under_way.contains(kNews) &&
        !waiting.contains(kNews)) {
      const auto [note, at] = std::move(news.front());
      news.pop_front();
      begin({kNews, event_creation(pod_of(note), false, note.reason, note.message, at)});
    }
    while (may_begin_news() && news.empty() && !repetitions.empty())
      begin(take(repetitions.front().key));
    if (left < options.per_second && !refilling && !stopped) {
      refilling = true;
      api.loop().after(options.period, [self = shared_from_this()] {
        self->refilling = false;
        self->left = self->options.per_second;
        self->go_on();
      });
    }
  }

  bool may_begin() const { return !stopped && calls < options.at_a_time && left > 0; }
  // Half of each second's writes are left for those who wait for a word.
  bool may_begin_news() const { return may_begin() && left > options.per_second / 2; }

  void begin(Words words) {
    under_way[words.key] = {};
    --left;
    ++calls;
    ApiRequest request = words.request();
    api.call(std::move(request), [self = shared_from_this(), words = std::move(words)](
                                     const ApiAnswer& answer) { self->ended(words, answer); });
  }

  // While they wait for another try they are under way: newer ones come after them, in order.
  void ended(Words words, const ApiAnswer& answer) {
    --calls;
    if (answer.error && had_trouble(*answer.error) && ++words.tries < options.retry.tries) {
      const Duration wait = std::min(answer.error->retry_after, options.retry.longest) +
                            backoff(options.retry.first, options.retry.longest, words.tries, rng);
      api.loop().after(wait, [self = shared_from_this(), words = std::move(words)] {
        self->leave(words, true);
      });
    } else {
      // Without an answer, for when the server is back.
      leave(words, answer.error && answer.error->reason == ApiReason::NotAnswered);
    }
    go_on();
  }

  // Newer words are better ones.
  void leave(const Words& words, bool once_more) {
    const auto it = under_way.find(words.key);
    const Begun begun = std::move(it->second);
    under_way.erase(it);
    if (begun.next)
      put(*begun.next);
    else if (once_more && begun.may_be_repeated)
      put(words);
  }

  std::function<ApiRequest()> event_creation(ObjectReference object, bool warning,
                                             std::string reason, std::string message, Instant at,
                                             bool again = false) const {
    return [this, object = std::move(object), warning, reason = std::move(reason),
            message = std::move(message), at, again] {
      Event event;
      event.about = object;
      // The same words have the same name, and the server keeps the first: a repetition is another
      // event.
      event.name = event_name(object, reason, again ? message + std::to_string(at.ms) : message);
      event.reason = reason;
      event.action = warning ? "Scheduling" : "Binding";
      event.note = message;
      event.warning = warning;
      event.at = at;
      event.controller = options.controller;
      event.instance = options.instance;
      return creation_of(event);
    };
  }

  void put_event(const ObjectReference& object, bool warning, const std::string& reason,
                 const std::string& message, bool again) {
    put({event_key(object.uid, reason),
         event_creation(object, warning, reason, message, clock(), again), again});
  }

  Api& api;
  const TellerOptions options;
  const Clock clock;
  Rng rng;
  Queue order, repetitions;
  std::unordered_map<std::string, Queue::iterator> waiting;  // by key
  // Of what went well; one after the other, so that a busy server gets few.
  std::deque<std::pair<Note, Instant>> news;
  // Requests travel side by side: the later word about an object must not overtake the earlier one.
  struct Begun {
    std::optional<Words> next;
    bool may_be_repeated = true;
  };
  std::unordered_map<std::string, Begun> under_way;  // by key
  int calls = 0;
  int left = options.per_second;
  bool refilling = false;
  bool stopped = false;
};

Teller::Teller(Api& api, TellerOptions options, Clock clock)
    : impl_(std::make_shared<Impl>(api, std::move(options), std::move(clock))) {}
Teller::~Teller() { impl_->stopped = true; }

void Teller::tell(const Tell& words) {
  impl_->put({condition_key(words.pod.uid), [words, at = impl_->clock()] {
                const PodCondition condition{words.reason, words.message, at, words.nominated_node};
                return of_subresource(
                    patch_object(pods(), words.pod.ns, words.pod.name, PatchType::Strategic,
                                 encode_unscheduled(condition)),
                    "status");
              }});
  note({words.pod, true, kWaits, words.message});
}

void Teller::retract(const Retract& pod) {
  impl_->drop(condition_key(pod.uid));
  impl_->drop(event_key(pod.uid, kWaits));
}

void Teller::note(const Note& note) {
  if (!note.warning) return impl_->put_news(note);
  impl_->put_event(pod_of(note), true, note.reason, note.message, note.again);
}

void Teller::note_about(const ObjectReference& object, bool warning, const std::string& reason,
                        const std::string& message) {
  impl_->put_event(object, warning, reason, message, false);
}

void Teller::tell_claim(const TellClaim& told) {
  impl_->put({"claim/" + told.ns + "/" + told.name, [told] {
                const Resource claims{"gpu.scheduling", "v1", "gpuclaims", true};
                return of_subresource(
                    apply_object(claims, told.ns, told.name,
                                 encode_claim_status(told.ns, told.name, told.status), kManager),
                    "status");
              }});
}

void Teller::tell_config(const ObjectReference& object, const ConfigStatus& status) {
  impl_->put({"config/" + object.kind + "/" + object.name, [object, status] {
                const Resource configs{"topology.scheduler", "v1alpha1",
                                       object.kind == "SchedulerConfig"
                                           ? "schedulerconfigs"
                                           : "topologyschedulerconfigs",
                                       false};
                return of_subresource(
                    apply_object(configs, {}, object.name,
                                 encode_config_status(object.kind, object.name, status), kManager),
                    "status");
              }});
}

void Teller::tell_tenant(const TellTenant& told) {
  impl_->put({"tenant/" + told.name, [told] {
                const Resource tenants{"gpu.scheduling", "v1", "gputenants", false};
                return of_subresource(
                    apply_object(tenants, {}, told.name,
                                 encode_tenant_status(told.name, told.status), kManager),
                    "status");
              }});
  if (!told.is_news) return;
  note_about({kGpuApi, "GpuTenant", {}, told.name, told.uid, {}}, !told.status.accepted,
             told.status.accepted ? "TenantAccepted" : "TenantRefused", told.status.message);
}

}  // namespace gs::kube
