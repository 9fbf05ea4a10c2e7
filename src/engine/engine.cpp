#include "engine/engine.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "engine/state.hpp"
#include "queue/fair_share.hpp"

namespace gs {

Engine::Engine() : impl_(std::make_unique<Impl>()) {}
Engine::~Engine() = default;

namespace {

bool frees_something(const Command& command) {
  return std::holds_alternative<TaskEnded>(command) || std::holds_alternative<CancelJob>(command) ||
         std::holds_alternative<RemoveNode>(command) ||
         std::holds_alternative<CordonNode>(command) || std::holds_alternative<ReportGpu>(command);
}

}  // namespace

Result<Effects> Engine::handle(const Command& command, Instant now) {
  impl_->now = std::max(impl_->now, now);
  impl_->effects.clear();
  // What was used until now counts as used; a second more or less of it is nobody's business.
  if (impl_->cluster.tenant_count() > 0 && frees_something(command) &&
      impl_->now - impl_->cluster.tenant(TenantId{0}).decayed_at >= seconds(1))
    decay_usage(impl_->cluster, impl_->config.usage_half_life, impl_->now);
  const Status status = std::visit([&](const auto& c) { return impl_->apply(c); }, command);
  if (!status) {
    CHECK_MSG(impl_->effects.empty(), "a refused command must have no effects");
    return status.error();
  }
  impl_->dirty = true;
  return std::move(impl_->effects);
}

Effects Engine::tick(Instant now) {
  impl_->now = std::max(impl_->now, now);
  impl_->effects.clear();
  auto& deadlines = impl_->deadlines;
  while (!deadlines.empty() && std::get<0>(*deadlines.begin()) <= impl_->now) {
    const auto [when, seq, job] = *deadlines.begin();
    deadlines.erase(deadlines.begin());
    // The record may belong to another job by now: numbers are used again.
    if (impl_->cluster.job(job).seq == seq) impl_->check_deadline(job);
  }
  impl_->placer.refresh();
  impl_->emit(impl_->cycle.run(impl_->now));
  impl_->dirty = impl_->cycle.unsettled();
  return std::move(impl_->effects);
}

const Cluster& Engine::cluster() const { return impl_->cluster; }
const Config& Engine::config() const { return impl_->config; }
std::size_t Engine::waiting() const { return impl_->queue.size(); }

bool Engine::needs_tick(Instant now) const {
  const auto& deadlines = impl_->deadlines;
  return impl_->dirty || (!deadlines.empty() && std::get<0>(*deadlines.begin()) <= now);
}

std::optional<Instant> Engine::next_deadline() const {
  if (impl_->deadlines.empty()) return std::nullopt;
  return std::get<0>(*impl_->deadlines.begin());
}

void Engine::verify() const { impl_->cluster.verify(); }

// ---------------------------------------------------------------- decisions -> effects

TaskRef Engine::Impl::ref(const Task& task) const {
  return {cluster.job(task.job).id, task.group, task.rank};
}

TaskPlace Engine::Impl::place_value(const Task& task) const {
  TaskPlace place{ref(task), cluster.node(task.place.node).spec.name, {}, {}};
  for_each_gpu(task.place.gpus, [&](int gpu) { place.gpus.push_back(gpu); });
  for (const MigPick& pick : task.place.mig)
    place.mig.push_back({pick.gpu, cluster.shapes().resources().name(pick.profile).substr(4),
                         pick.start, pick.create});
  return place;
}

namespace {

StopReason reason_of(const Decision& decision, const JobRecord& job) {
  const std::string_view phase = decision.phase;
  if (decision.moved) return StopReason::Moved;
  if (phase == "recover") return StopReason::GangBroken;
  if (job.active_tasks > 0) return StopReason::Shrunk;
  return phase == "reclaim" ? StopReason::Reclaimed : StopReason::Preempted;
}

}  // namespace

// Decisions about one job that follow each other become one effect.
void Engine::Impl::emit(const std::vector<Decision>& decisions) {
  std::vector<JobId> touched;
  for (const Decision& decision : decisions) {
    const JobRecord& job = cluster.job(decision.job);
    touched.push_back(decision.job);
    switch (decision.kind) {
      case Decision::Kind::Start: {
        auto* last = effects.empty() ? nullptr : std::get_if<StartTasks>(&effects.back());
        if (last == nullptr || last->job != job.id) effects.emplace_back(StartTasks{job.id, {}});
        std::get<StartTasks>(effects.back())
            .tasks.push_back(place_value(cluster.task(decision.task)));
        break;
      }
      case Decision::Kind::Nominate: {
        auto* last = effects.empty() ? nullptr : std::get_if<NominateTasks>(&effects.back());
        if (last == nullptr || last->job != job.id) effects.emplace_back(NominateTasks{job.id, {}});
        std::get<NominateTasks>(effects.back())
            .tasks.push_back(place_value(cluster.task(decision.task)));
        break;
      }
      case Decision::Kind::Evict: {
        const std::string for_job = decision.for_job.valid() && decision.for_job != decision.job
                                        ? cluster.job(decision.for_job).id
                                        : std::string{};
        const StopReason reason = reason_of(decision, job);
        auto* last = effects.empty() ? nullptr : std::get_if<StopTasks>(&effects.back());
        if (last == nullptr || last->job != job.id || last->for_job != for_job ||
            last->reason != reason)
          effects.emplace_back(StopTasks{job.id, {}, reason, for_job});
        std::get<StopTasks>(effects.back())
            .tasks.push_back({job.id, decision.group, decision.rank});
        break;
      }
      case Decision::Kind::Drop:
        break;
    }
  }
  std::sort(touched.begin(), touched.end(),
            [&](JobId a, JobId b) { return cluster.job(a).seq < cluster.job(b).seq; });
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const JobId job : touched) refresh(job);
}

}  // namespace gs
