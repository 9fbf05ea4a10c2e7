// Words: why pods wait, and what has become of claims.
#include <algorithm>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

// One that is placed in the next cycles need not be told that it waits, nor that its gang is not
// whole while the others are being made.
constexpr Duration kFirstWords = milliseconds(100), kGangWords = milliseconds(500);
constexpr Duration kNextWords = seconds(5);
constexpr Duration kMostBetween = seconds(60);
// The API server forgets events, as a rule after an hour; whoever asks why a pod waits is to find
// one.
constexpr Duration kEventAgain = minutes(30);
// Explaining costs as much as placing: only so many a turn.
constexpr int kWordsPerTurn = 64;

// A condition that was written before needs no second write: the pod was on its way to a node that
// it did not get, or another scheduler led.
bool shows(const Pod& pod, const Tell& words) {
  return pod.scheduled == false && pod.scheduled_reason == words.reason &&
         pod.scheduled_message == words.message && pod.nominated_node == words.nominated_node;
}

// Nothing but another claim or pod will help.
bool is_wrong(const std::string& reason) {
  return reason == "ClaimInvalid" || reason == "InvalidRequest" || reason == "InvalidGang" ||
         reason == "NotSupported";
}

}  // namespace

void Desk::will_tell(PodRecord& record) {
  const bool gathers = record.unit.empty() && !record.ask.gang.empty();
  const Instant at = now_ + (gathers ? kGangWords : kFirstWords);
  if (record.tell_at) {
    if (*record.tell_at <= at || record.told) return;
    tell_at_.erase({*record.tell_at, record.pod.meta.uid});
  }
  record.tell_at = at;
  tell_at_.emplace(at, record.pod.meta.uid);
}

void Desk::tell_waiting() {
  for (int n = 0; n < kWordsPerTurn && !tell_at_.empty() && tell_at_.begin()->first <= now_; ++n) {
    const std::string uid = tell_at_.begin()->second;
    tell_at_.erase(tell_at_.begin());
    const auto it = pods_.find(uid);
    if (it == pods_.end()) continue;
    PodRecord& record = it->second;
    record.tell_at.reset();
    const bool waits = record.ours && record.pod.node_name.empty() && !record.gone &&
                       !record.pod.ended() && !record.pod.meta.deleted;
    const Slot* slot = slot_of(record);
    if (!waits || (slot != nullptr && slot->stage != Stage::Waiting)) continue;
    say(record);
    record.tell_at = now_ + record.told_pause;
    tell_at_.emplace(*record.tell_at, uid);
  }
}

// What has changed; or else, after a while, once more the event alone.
void Desk::say(PodRecord& record) {
  record.nominated_node = nominated_to(record);
  Tell words = words_for(record);
  const bool same = record.told && words == *record.told;
  record.told_pause =
      same ? std::min(kMostBetween, record.told_pause + record.told_pause) : kNextWords;
  if (same) {
    if (now_ < record.event_at + kEventAgain) return;
    record.event_at = now_;
    orders_.emplace_back(Note{words.pod, true, "FailedScheduling", words.message, true});
    return;
  }
  const bool written = !record.told && shows(record.pod, words);
  record.told = std::make_unique<const Tell>(words);
  record.event_at = now_;
  touch_claim(record);
  if (written)  // if its event is still there, the server keeps that
    orders_.emplace_back(Note{words.pod, true, "FailedScheduling", words.message});
  else
    orders_.emplace_back(std::move(words));
}

void Desk::retract(PodRecord& record) {
  if (!record.told) return;
  record.told.reset();
  orders_.emplace_back(Retract{record.pod.meta.uid});
}

// The engine does not say when it gives a plan up: what was promised then is not any more.
std::string Desk::nominated_to(const PodRecord& record) {
  const Slot* slot = slot_of(record);
  if (record.nominated_node.empty() || slot == nullptr) return {};
  const Cluster& cluster = engine_->cluster();
  const JobId id = cluster.find_job(record.unit);
  if (!id.valid() || cluster.job(id).nominated_tasks == 0) return {};
  for (const TaskId task_id : cluster.job(id).tasks) {
    const Task& task = cluster.task(task_id);
    if (task.state == TaskState::Nominated && task.group == slot->task.group &&
        task.rank == slot->task.rank)
      return cluster.node(task.place.node).spec.name;
  }
  return {};
}

Tell Desk::words_for(const PodRecord& record) {
  Tell words{name_of(record.pod), record.ask.reason, record.ask.waits_for, record.nominated_node};
  if (record.unit.empty()) return words;
  words.reason = "Unschedulable";
  const Result<Explanation> known = engine_->explain(record.unit, now_);
  if (!known) return words;
  words.message = known->why ? known->why->sentence : "waits for its turn";
  // Nothing else may happen for hours, and meanwhile others could use the room that is kept for it.
  if (known->why && known->why->reservation && known->why->reservation->start <= now_)
    plan_is_old_ = true;
  if (const std::string rules = rule_words(record); !rules.empty()) words.message += "; " + rules;
  return words;
}

// ---------------------------------------------------------------- claims

void Desk::touch_claim(const PodRecord& record) {
  if (record.ask.claim.empty()) return;
  dirty_claims_.insert({record.pod.meta.ns, record.ask.claim});
}

void Desk::put_claim(const std::string& ns, const std::string& name, const std::string& uid,
                     ClaimStatus shown) {
  const ClaimKey key{ns, name};
  ClaimRecord& claim = claims_[key];
  claim.status.seen(uid, std::move(shown));
  if (!synced_) return;
  dirty_claims_.insert(key);
  if (const std::optional<Instant> again = claim.status.look_again())
    claim_looks_.emplace(*again, key);
}

void Desk::remove_claim(const std::string& ns, const std::string& name) {
  const auto it = claims_.find({ns, name});
  if (it == claims_.end()) return;
  it->second.status.forget();
  dirty_claims_.insert(it->first);
}

void Desk::tell_claims() {
  while (!claim_looks_.empty() && claim_looks_.begin()->first <= now_) {
    dirty_claims_.insert(claim_looks_.begin()->second);
    claim_looks_.erase(claim_looks_.begin());
  }
  for (const ClaimKey& key : std::exchange(dirty_claims_, {})) tell_claim(key);
}

void Desk::tell_claim(const ClaimKey& key) {
  const auto it = claims_.find(key);
  if (it == claims_.end()) return;
  ClaimRecord& claim = it->second;
  if (!claim.status.is_known()) {
    if (claim.pods.empty()) claims_.erase(it);
    return;  // there is nothing to write to
  }
  const ClaimStatus& expected = claim.status.expected(now_);
  if (claim.pods.empty() && expected.phase == ClaimPhase::None) return;  // nobody has used it yet
  ClaimStatus status = claim_status(claim);
  if (expected == status || (claim.pods.empty() && is_told_by_another(key))) return;
  claim.status.tell(status, now_);
  claim_looks_.emplace(*claim.status.look_again(), key);  // it may be refused, or be lost
  orders_.emplace_back(TellClaim{key.first, key.second, std::move(status)});
}

// Whether a pod of another scheduler uses it, which says itself what has become of it: two that
// contradict each other would never end.
bool Desk::is_told_by_another(const ClaimKey& key) const {
  return std::any_of(pods_.begin(), pods_.end(), [&](const auto& pod) {
    const PodRecord& record = pod.second;
    if (record.ours || record.gone || record.pod.ended() || record.pod.meta.ns != key.first)
      return false;
    const std::string* claim = record.pod.meta.annotation(kClaimAnnotation);
    return claim != nullptr && *claim == key.second;
  });
}

ClaimStatus Desk::claim_status(const ClaimRecord& claim) const {
  ClaimStatus status;
  status.phase = ClaimPhase::Pending;
  std::size_t bound = 0, binding = 0, wrong = 0;
  for (const std::string& uid : claim.pods) {
    const PodRecord& record = pods_.at(uid);
    wrong += record.unit.empty() && !record.place && is_wrong(record.ask.reason);
    if (!record.unit.empty()) {
      const Slot& slot = units_.at(record.unit).slots[record.slot];
      binding += slot.stage == Stage::Binding;
    }
    if (record.place) {
      ++bound;
      ClaimAllocation allocation{record.pod.meta.name, record.place->node, record.place->gpus, {}};
      for (const MigPlace& instance : record.place->mig) {
        allocation.mig.push_back(instance.profile);
        allocation.gpus.push_back(instance.gpu);
      }
      std::sort(allocation.gpus.begin(), allocation.gpus.end());
      allocation.gpus.erase(std::unique(allocation.gpus.begin(), allocation.gpus.end()),
                            allocation.gpus.end());
      status.allocations.push_back(std::move(allocation));
    } else if (status.message.empty()) {
      status.message = record.told ? record.told->message : "";
    }
  }
  std::sort(status.allocations.begin(), status.allocations.end(),
            [](const ClaimAllocation& a, const ClaimAllocation& b) { return a.pod < b.pod; });
  if (bound > 0 && bound == claim.pods.size()) {
    status.phase = ClaimPhase::Bound;
    status.message = "allocated";
  } else if (binding > 0 || bound > 0) {
    status.phase = ClaimPhase::Reserved;
  } else if (wrong > 0 && wrong == claim.pods.size()) {
    status.phase = ClaimPhase::Failed;
  }
  if (claim.pods.empty()) status.message = "no pod uses this claim";
  for (const ClaimAllocation& allocation : status.allocations)
    status.allocated.append(status.allocated.empty() ? "" : " ")
        .append(allocated_text(allocation.node, allocation.gpus));
  if (!status.allocations.empty()) {
    status.node = status.allocations.front().node;
    status.gpus = status.allocations.front().gpus;
  }
  return status;
}

}  // namespace gs::kube
