// Why does it wait, when will it start, would it start: questions that change nothing.
#include <algorithm>
#include <string_view>

#include "cycle/attempt.hpp"
#include "engine/clock_text.hpp"
#include "engine/state.hpp"
#include "queue/members.hpp"
#include "queue/quota.hpp"

namespace gs {
namespace {

PlaceAsk ask_of(const Cluster& cluster, JobId job, Instant now) {
  PlaceAsk ask{job, {}, Firmness::StartNow, nullptr, now};
  for (const Member& member : next_members(cluster, job, nullptr)) {
    if (ask.tasks.empty() || ask.tasks.back().group != member.group)
      ask.tasks.push_back({member.group, {}});
    ask.tasks.back().ranks.push_back(member.rank);
  }
  return ask;
}

// What a quota is about, as people say it: the words, and how much one unit of the books is.
struct QuotaWords {
  std::string_view resource, words;
  std::int64_t unit;
  std::string_view unit_words;
};
constexpr QuotaWords kQuotaWords[] = {
    {"gpu_milli", "GPUs", kWholeGpu, ""},    {"gpu_memory_mib", "GPU memory", 1024, " GiB"},
    {"cpu_milli", "CPU cores", 1000, ""},    {"memory_bytes", "memory", 1024 * kMiB, " GiB"},
    {"running_jobs", "running jobs", 1, ""},
};

std::string in_units(std::int64_t amount, std::int64_t unit) {
  const std::int64_t thousandths = amount % unit * 1000 / unit;
  std::string text = std::to_string(amount / unit);
  if (thousandths == 0) return text;
  std::string part = std::to_string(1000 + thousandths).substr(1);
  while (part.back() == '0') part.pop_back();
  return text + "." + part;
}

std::string quota_sentence(const QuotaState& q) {
  constexpr std::string_view kGuaranteed = "guaranteed ";
  std::string_view resource = q.resource;
  const bool guaranteed = resource.substr(0, kGuaranteed.size()) == kGuaranteed;
  if (guaranteed) resource.remove_prefix(kGuaranteed.size());
  QuotaWords words{resource, resource, kWholeGpu, ""};  // of one model: "gpus of H100"
  for (const QuotaWords& known : kQuotaWords)
    if (known.resource == resource) words = known;
  const auto text = [&](std::int64_t amount) {
    return in_units(amount, words.unit) + std::string(words.unit_words);
  };
  return "quota exceeded for tenant " + q.tenant + ": " + (guaranteed ? "guaranteed " : "") +
         std::string(words.words) + " requested=" + text(q.requested) + ", quota=" + text(q.limit) +
         ", current=" + text(q.current);
}

// GPUs that can only be of one model.
ModelAsks model_asks(const Cluster& cluster, JobId job) {
  ModelAsks asks;
  const JobShape& shape = cluster.shape_of(job);
  for (const Member& member : first_members(shape)) {
    const Shape& task =
        cluster.shapes().at(shape.groups[static_cast<std::size_t>(member.group)].shape);
    if (task.models.size() == 1)
      asks.emplace_back(task.models.front(), least_usage(cluster, task).gpu_milli);
  }
  return asks;
}

Usage total_usage(const Cluster& cluster, JobId job) {
  Usage sum;
  const JobShape& shape = cluster.shape_of(job);
  for (const Member& member : first_members(shape))
    sum += least_usage(
        cluster, cluster.shapes().at(shape.groups[static_cast<std::size_t>(member.group)].shape));
  return sum;
}

}  // namespace

// What can never run is refused at once. A cluster without nodes refuses nothing: they may come.
std::optional<Why> Engine::Impl::refusal_of(JobId job) {
  const JobRecord& record = cluster.job(job);
  Why why;
  why.verdict = Verdict::Never;
  auto quota = never_allowed(cluster, record.tenant, total_usage(cluster, job), record.preemptible);
  if (!quota) quota = never_allowed(cluster, record.tenant, model_asks(cluster, job));
  if (quota) {
    why.constraint = Constraint::Quota;
    why.sentence = quota_sentence(*quota);
    why.quota = std::move(quota);
    return why;
  }
  if (cluster.total().cpu_milli == 0 && cluster.total().gpu_milli == 0) return std::nullopt;
  PlaceAsk ask = ask_of(cluster, job, now);
  if (ask.tasks.empty()) {  // not all members are there yet: the whole gang is what counts
    for (const Member& member : first_members(cluster.shape_of(job))) {
      if (ask.tasks.empty() || ask.tasks.back().group != member.group)
        ask.tasks.push_back({member.group, {}});
      ask.tasks.back().ranks.push_back(member.rank);
    }
  }
  if (!config.refuse_never || placer.fits_empty_cluster(ask)) return std::nullopt;
  why = placer.explain(ask);
  why.verdict = Verdict::Never;
  why.sentence = "job " + record.id + " can never run in this cluster: " + why.sentence;
  return why;
}

Why Engine::Impl::why_waiting(JobId job, const WaitReason* reason) {
  const JobRecord& record = cluster.job(job);
  Why why;
  if (record.state == JobState::Held) {
    why.constraint = Constraint::Held;
    why.sentence = "is held until it is released";
    return why;
  }
  if (!is_ready(cluster, job)) {
    why.constraint = Constraint::GangIncomplete;
    why.sentence = std::to_string(record.arrived) + " of at least " +
                   std::to_string(cluster.shape_of(job).min_tasks) +
                   " members have arrived; nothing is held for an incomplete gang";
    return why;
  }
  const auto known = cycle.reasons().find(queue.lane_of(job));
  if (reason == nullptr && known != cycle.reasons().end()) reason = &known->second;
  if (reason != nullptr && reason->constraint == Constraint::Quota && reason->quota) {
    why.constraint = Constraint::Quota;
    why.quota = reason->quota;
    why.sentence = "waits for its tenant: " + quota_sentence(*reason->quota);
  } else {
    const PlaceAsk ask = ask_of(cluster, job, now);
    Trial trial(cluster);
    if (placer.place(trial, ask)) {
      const bool behind = reason != nullptr && reason->constraint == Constraint::Reservation;
      why.constraint = behind ? Constraint::Reservation : Constraint::Order;
      why.sentence = behind ? "fits now, but would delay a job before it that has a reservation"
                            : "fits now; waits for its turn in the next cycle";
    } else {
      trial.rollback(0);
      why = placer.explain(ask);
    }
  }
  for (const Reservation& reservation : cycle.reservations()) {
    if (reservation.job != job) continue;
    why.reservation = Reserved{reservation.start, reservation.nodes};
    why.sentence += "; expected start " + clock_text(reservation.start);
    return why;
  }
  if (why.verdict == Verdict::NotNow && why.constraint == Constraint::Capacity &&
      cycle.searched(job))
    why.sentence +=
        "; no expected start, because what runs there has no expected or maximum runtime";
  return why;
}

Result<Explanation> Engine::explain(const std::string& id, Instant now) {
  impl_->now = std::max(impl_->now, now);
  const JobId job = impl_->cluster.find_job(id);
  if (!job.valid()) return not_found("job " + id + " does not exist");
  const JobRecord& record = impl_->cluster.job(job);
  Explanation answer;
  answer.state = to_string(record.state);
  std::vector<TaskId> tasks = record.tasks;
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    const Task& x = impl_->cluster.task(a);
    const Task& y = impl_->cluster.task(b);
    return std::tuple(x.group, x.rank, x.state) < std::tuple(y.group, y.rank, y.state);
  });
  for (const TaskId task : tasks) {
    const Task& placed = impl_->cluster.task(task);
    if (placed.state == TaskState::Releasing) continue;
    answer.places.push_back(impl_->place_value(placed));
    answer.scores.push_back(impl_->placer.score_card(
        impl_->cluster.shape_of(job).groups[placed.group].shape, placed.place.node));
  }
  if (record.active_tasks == 0 &&
      (record.state == JobState::Waiting || record.state == JobState::Held)) {
    answer.why = impl_->why_waiting(job);
    if (answer.why->reservation) answer.expected_start = answer.why->reservation->start;
    if (answer.why->constraint == Constraint::Quota && !answer.expected_start)
      impl_->forecast_start(job, answer);
  }
  return answer;
}

void Engine::Impl::forecast_start(JobId job, Explanation& answer) {
  answer.expected_start = cycle.forecast(job, now);
  if (answer.expected_start)
    answer.why->sentence += "; expected start " + clock_text(*answer.expected_start);
}

Result<DryRun> Engine::dry_run(const Job& job, Instant now) {
  Impl& in = *impl_;
  in.now = std::max(in.now, now);
  if (Status s = validate(job); !s) return s.error();
  const TenantId tenant = in.cluster.find_tenant(job.tenant);
  if (!tenant.valid() || in.cluster.tenant(tenant).gone)
    return not_found("tenant " + job.tenant + " does not exist");
  if (in.cluster.find_job(job.id).valid())
    return Error{ErrorCode::AlreadyExists, "job " + job.id + " exists already"};
  const std::uint64_t seq = in.cluster.next_seq();
  const JobId id = in.cluster.add_job(job, tenant);
  DryRun answer;
  if (auto never = in.refusal_of(id)) {
    answer.why = std::move(never);
  } else if (!is_ready(in.cluster, id)) {
    answer.why = in.why_waiting(id);
  } else {
    WaitReason reason;
    in.cycle.dry_run(id, in.now, [&](const DryOutcome& outcome) {
      in.describe(outcome, id, answer);
      reason = outcome.reason;
    });
    if (!answer.starts_now) answer.why = in.why_waiting(id, &reason);
    if (answer.why && answer.expected_start) {
      answer.why->reservation = Reserved{*answer.expected_start, {}};
      answer.why->sentence += "; expected start " + clock_text(*answer.expected_start);
    }
  }
  in.cluster.forget_job(id);
  in.cluster.set_next_seq(seq);
  return answer;
}

void Engine::Impl::describe(const DryOutcome& outcome, JobId job, DryRun& answer) const {
  answer.starts_now = outcome.starts_now;
  if (outcome.reservation) answer.expected_start = outcome.reservation->start;
  for (const Decision& decision : outcome.decisions) {
    if (decision.kind == Decision::Kind::Evict)
      answer.evicts.push_back({cluster.job(decision.job).id, decision.group, decision.rank});
    else if (decision.job == job && decision.kind != Decision::Kind::Drop)
      answer.places.push_back(place_value(cluster.task(decision.task)));
  }
  if (!answer.places.empty()) answer.expected_start.reset();
}

}  // namespace gs
