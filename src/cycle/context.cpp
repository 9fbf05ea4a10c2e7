#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "cycle/cycle.hpp"
#include "queue/members.hpp"

namespace gs {
namespace {

// The net outcome of a kept trial: what was placed and given up again, or evicted and spared, did
// not happen.
class NetOutcome {
 public:
  explicit NetOutcome(const Cluster& cluster) : cluster_(cluster) {}

  void add(const Trial::Change& change, JobId for_job, const char* phase) {
    const bool dropped = change.kind == Trial::Kind::Dropped;
    const Task& task = dropped ? change.before : cluster_.task(change.task);
    Decision d{
        Decision::Kind::Start, change.task, task.job, task.group, task.rank, for_job, phase, false};
    switch (change.kind) {
      case Trial::Kind::Placed:
        d.kind = Decision::Kind::Nominate;  // or Start: its state says it at the end
        append(d);
        break;
      case Trial::Kind::Started:
        append(d);
        break;
      case Trial::Kind::Released:
        d.kind = Decision::Kind::Evict;
        append(d);
        break;
      case Trial::Kind::Spared:
        forget(change.task);
        break;
      case Trial::Kind::Dropped:
        d.kind = Decision::Kind::Drop;
        d.promise = std::make_shared<Task>(change.before);
        if (!forget(change.task)) append(d);
        break;
      case Trial::Kind::Held:
        break;
    }
  }

  std::vector<Decision> take() {
    std::vector<Decision> net;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      Decision& d = list_[i];
      if (gone_[i]) continue;
      if (d.kind == Decision::Kind::Nominate && cluster_.task(d.task).state == TaskState::Running)
        d.kind = Decision::Kind::Start;
      net.push_back(d);
    }
    mark_moves(net);
    return net;
  }

 private:
  void append(const Decision& d) {
    latest_[d.task] = list_.size();
    list_.push_back(d);
    gone_.push_back(false);
  }
  bool forget(TaskId task) {
    const auto it = latest_.find(task);
    if (it == latest_.end()) return false;
    gone_[it->second] = true;
    latest_.erase(it);
    return true;
  }
  // Evicted here and placed there in one plan: a move.
  static void mark_moves(std::vector<Decision>& net) {
    const auto key = [](const Decision& d) {
      return std::uint64_t{d.job.v} << 32 | static_cast<std::uint64_t>(d.group) << 20 |
             static_cast<std::uint64_t>(d.rank);
    };
    std::unordered_map<std::uint64_t, Decision*> placed;
    for (Decision& d : net)
      if (d.kind == Decision::Kind::Nominate) placed.emplace(key(d), &d);
    for (Decision& d : net) {
      if (d.kind != Decision::Kind::Evict) continue;
      const auto it = placed.find(key(d));
      if (it != placed.end()) d.moved = it->second->moved = true;
    }
  }

  const Cluster& cluster_;
  std::vector<Decision> list_;
  std::vector<bool> gone_;
  std::unordered_map<TaskId, std::size_t> latest_;
};

}  // namespace

void CycleContext::settle(JobId job) {
  const JobRecord& record = cluster.job(job);
  const auto by_seq = [&](JobId a, JobId b) { return cluster.job(a).seq < cluster.job(b).seq; };
  const auto at = std::lower_bound(nominated.begin(), nominated.end(), job, by_seq);
  const bool listed = at != nominated.end() && *at == job;
  if (record.nominated_tasks > 0 && !listed) nominated.insert(at, job);
  if (record.nominated_tasks == 0 && listed) nominated.erase(at);
  queue.erase(job);
  const bool open = !is_final(record.state) && record.state != JobState::Stopping &&
                    record.state != JobState::Held;
  if (!open || (record.active_tasks == 0 && record.releasing_tasks > 0)) return;
  if (record.active_tasks == 0 || !waiting_members(cluster, job, nullptr).empty()) queue.push(job);
}

namespace {

// Who left or gave its promise up, and has no other place, was evicted for whoever the plan is for.
void note_evictions(const Cluster& cluster, const std::vector<Decision>& net,
                    EvictionOrder& order) {
  std::set<std::tuple<JobId, int, int>> placed;
  for (const Decision& d : net)
    if (d.kind == Decision::Kind::Nominate || d.kind == Decision::Kind::Start)
      placed.emplace(d.job, d.group, d.rank);
  for (const Decision& d : net) {
    const bool leaves = d.kind == Decision::Kind::Evict || d.kind == Decision::Kind::Drop;
    if (!leaves || d.job == d.for_job || placed.contains({d.job, d.group, d.rank})) continue;
    order.note(cluster.job(d.job).seq, cluster.job(d.for_job).seq);
  }
}

}  // namespace

void CycleContext::keep(Trial& trial, JobId for_job) {
  NetOutcome outcome(cluster);
  std::vector<Trial::Change> kept = trial.keep();
  for (const Trial::Change& change : kept) outcome.add(change, for_job, phase);
  if (undo != nullptr) undo->adopt(std::move(kept));
  const std::vector<Decision> net = outcome.take();
  if (undo == nullptr) note_evictions(cluster, net, eviction_order);
  JobId last;
  for (const Decision& d : net) {
    if (d.job != last) settle(d.job);
    if (d.kind == Decision::Kind::Evict) ++evicted[d.job];
    if (d.kind == Decision::Kind::Evict && !d.moved && d.for_job != d.job)
      evictors.insert(d.for_job);
    last = d.job;
  }
  decisions.insert(decisions.end(), net.begin(), net.end());
}

}  // namespace gs
