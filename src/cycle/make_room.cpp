#include "cycle/make_room.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "cycle/attempt.hpp"

namespace gs {
namespace {

// A search that has simulated so many plans in vain gives up; the job is tried again next cycle.
constexpr int kMaxSimulations = 256;

// GPUs that a member certainly takes. Requests in memory or MIG slices have no fixed size: 0.
std::int64_t certain_gpu_milli(const GpuRequest& gpu) {
  switch (gpu.sharing) {
    case Sharing::Exclusive:
      return std::int64_t{gpu.count} * kWholeGpu;
    case Sharing::Shared:
      return std::int64_t{gpu.count} * gpu.milli;
    case Sharing::Mig:
      return 0;
  }
  return 0;
}

std::int64_t free_gpu_milli(const NodeState& node) {
  if (node.gone || !node.schedulable()) return 0;
  const GpuMask free = node.free_gpus(View::Future);
  std::int64_t milli = std::int64_t{gpu_count(free)} * kWholeGpu;
  for_each_gpu(node.partly & node.usable() & ~free, [&](int gpu) {
    milli += std::max<std::int64_t>(
        0, node.gpus[static_cast<std::size_t>(gpu)].milli.free(View::Future));
  });
  return milli;
}

bool has_free_mig(const NodeState& node) {
  return std::any_of(node.mig.begin(), node.mig.end(), [](const MigGpuState& gpu) {
    return gpu.dynamic || std::any_of(gpu.instances.begin(), gpu.instances.end(),
                                      [](const auto& i) { return i.free(View::Future); });
  });
}

}  // namespace

RoomMaker::RoomMaker(CycleContext& context, UnitStream& units, const RoomAsk& ask)
    : context_(context), stream_(units), ask_(ask), simulation_(context), trial_(context.cluster) {
  const Cluster& cluster = context.cluster;
  bool all_need_gpus = true;
  for (const Member& member : ask.members) {
    const GpuRequest& gpu =
        cluster.shapes().at(shape_of(cluster, ask.job, member.group)).request.gpu;
    needs_.push_back(certain_gpu_milli(gpu));
    all_need_gpus &= gpu.count > 0 || !gpu.mig.empty();
  }
  if (std::equal(needs_.begin() + 1, needs_.end(), needs_.begin())) need_ = needs_.front();
  capacity_.resize(cluster.node_count());
  base_.resize(cluster.node_count());
  for (std::size_t i = 0; i < capacity_.size(); ++i) {
    const NodeState& node = cluster.node(NodeId{i});
    capacity_[i] = free_gpu_milli(node);
    base_[i] = !all_need_gpus || capacity_[i] > 0 || has_free_mig(node);
    base_slots_ += slots_of(capacity_[i]);
  }
}

bool RoomMaker::run() {
  for (const Reach reach : {Reach::OneNode, Reach::ManyNodes}) {
    if (!solve(reach)) continue;
    for (const VictimTask& task : simulation_.lost()) evicted_.push_back(task.job);
    context_.keep(trial_, ask_.job);
    return true;
  }
  return false;
}

// The largest number of members that can be served is found by doubling, then halving the gap;
// each success says who has to leave in any case.
bool RoomMaker::solve(Reach reach) {
  recorded_.clear();
  const std::size_t all = ask_.members.size();
  std::size_t solved = 0, open = 0;
  for (std::size_t k = 1;; k = std::min(2 * k, all)) {
    if (!probe(k, reach)) {
      open = k;
      break;
    }
    if (k == all) return true;
    record_needed();
    solved = k;
  }
  while (open - solved > 1) {
    const std::size_t middle = (solved + open) / 2;
    if (probe(middle, reach)) {
      record_needed();
      solved = middle;
    } else {
      open = middle;
    }
  }
  return solved > 0 && probe(all, reach);
}

// Those that don't just run on; with each, those of its job that leave before it: what is left of a
// job without its surplus does not leave alone.
void RoomMaker::record_needed() {
  recorded_.clear();
  std::unordered_set<JobId> jobs;
  for (auto chosen = last_.rbegin(); chosen != last_.rend(); ++chosen) {
    const bool needed = std::any_of(chosen->begin(), chosen->end(), [&](const Unit* unit) {
      return jobs.count(unit->job) > 0 ||
             std::any_of(unit->tasks.begin(), unit->tasks.end(),
                         [&](const VictimTask& t) { return simulation_.is_needed(t); });
    });
    if (!needed) continue;
    for (const Unit* unit : *chosen) jobs.insert(unit->job);
    recorded_.push_back(*chosen);
  }
  std::reverse(recorded_.begin(), recorded_.end());
  trial_.rollback(0);
}

bool RoomMaker::is_recorded(const Unit& unit) const {
  return std::any_of(unit.tasks.begin(), unit.tasks.end(),
                     [&](const VictimTask& t) { return recorded_tasks_.has(t.id); });
}

std::int64_t RoomMaker::free_of(NodeId node) const {
  const auto it = recorded_freed_.find(node);
  return capacity_[node.index()] + (it == recorded_freed_.end() ? 0 : it->second);
}

void RoomMaker::start_probe() {
  added_.clear();
  tally_.clear();
  by_job_.clear();
  recorded_tasks_.clear();
  recorded_freed_.clear();
  slots_ = base_slots_;
  for (const Chosen& chosen : recorded_)
    for (const Unit* unit : chosen)
      for (const VictimTask& task : unit->tasks) {
        recorded_tasks_.set(task.id);
        std::int64_t& freed = recorded_freed_[task.node];
        slots_ -= slots_of(capacity_[task.node.index()] + freed);
        freed += task.amounts[kShareGpu];
        slots_ += slots_of(capacity_[task.node.index()] + freed);
      }
}

bool RoomMaker::probe(std::size_t count, Reach reach) {
  start_probe();
  if (!recorded_.empty() && enough_for(count) && simulate({}, count)) return true;
  for (std::size_t i = 0; simulations_ < kMaxSimulations; ++i) {
    if (simulations_ > 0 && is_hopeless()) return false;
    const Unit* unit = stream_.at(i);
    if (unit == nullptr) return false;
    if (is_recorded(*unit)) continue;
    add_unit(*unit);
    if (!enough_for(count)) continue;
    if (reach == Reach::OneNode ? try_one_node(count) : try_many_nodes(count)) return true;
  }
  return false;
}

bool RoomMaker::is_hopeless() {
  if (hopeless_) return *hopeless_;
  std::vector<const Unit*> all;  // before the books change: the stream reads them
  while (const Unit* unit = stream_.at(all.size())) all.push_back(unit);
  for (const Unit* unit : all)
    for (const VictimTask& task : unit->tasks) {
      if (task.promise)
        trial_.drop(task.id);
      else
        trial_.evict(task.id);
    }
  hopeless_ =
      !attempt(context_, trial_, ask_.job, ask_.members, Firmness::Nominate, nullptr).placed;
  trial_.rollback(0);
  return *hopeless_;
}

void RoomMaker::add_unit(const Unit& unit) {
  added_.push_back(&unit);
  by_job_[unit.job].push_back(&unit);
  for (const VictimTask& task : unit.tasks) {
    const auto [it, first] = tally_.try_emplace(task.node);
    Tally& tally = it->second;
    if (first) tally.first_seen = tally_.size();
    slots_ -= slots_of(free_of(task.node) + tally.freed);
    tally.freed += task.amounts[kShareGpu];
    slots_ += slots_of(free_of(task.node) + tally.freed);
    if (std::find(tally.jobs.begin(), tally.jobs.end(), unit.job) == tally.jobs.end())
      tally.jobs.push_back(unit.job);
  }
}

bool RoomMaker::enough_for(std::size_t count) const {
  if (need_ > 0) return slots_ >= static_cast<std::int64_t>(count);
  return greedy_match(count);
}

// Largest member first, each on the node with most room: necessary for members of unlike sizes.
bool RoomMaker::greedy_match(std::size_t count) const {
  std::vector<std::int64_t> needs(needs_.begin(),
                                  needs_.begin() + static_cast<std::ptrdiff_t>(count));
  std::sort(needs.begin(), needs.end(), std::greater<>());
  if (needs.front() == 0) return true;
  std::vector<std::int64_t> rooms;
  for (std::size_t i = 0; i < capacity_.size(); ++i) {
    const NodeId node{i};
    const auto it = tally_.find(node);
    rooms.push_back(free_of(node) + (it == tally_.end() ? 0 : it->second.freed));
  }
  std::sort(rooms.begin(), rooms.end(), std::greater<>());
  for (const std::int64_t need : needs) {
    if (need == 0) return true;
    const auto it =
        std::find_if(rooms.begin(), rooms.end(), [&](std::int64_t room) { return room >= need; });
    if (it == rooms.end()) return false;
    *it -= need;
  }
  return true;
}

// The added units around each node of the job that was added last.
bool RoomMaker::try_one_node(std::size_t count) {
  std::vector<NodeId> nodes;
  for (const TaskId id : context_.cluster.job(added_.back()->job).tasks)
    nodes.push_back(context_.cluster.task(id).place.node);
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    return context_.cluster.node(a).spec.name < context_.cluster.node(b).spec.name;
  });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const NodeId node : nodes) {
    const auto it = tally_.find(node);
    if (it == tally_.end()) continue;
    std::vector<Chosen> chosen;
    for (const JobId job : it->second.jobs) chosen.push_back(by_job_.at(job));
    if (could_do(chosen, count) && simulate(chosen, count)) return true;
  }
  return false;
}

// The added units on the fullest nodes that could do together, then on more and more of them.
bool RoomMaker::try_many_nodes(std::size_t count) {
  const auto needs_end = needs_.begin() + static_cast<std::ptrdiff_t>(count);
  const std::int64_t smallest = *std::min_element(needs_.begin(), needs_end);
  struct NodeRoom {
    std::int64_t room;
    std::size_t first_seen;
    NodeId node;
  };
  std::vector<NodeRoom> candidates;
  std::int64_t open = 0;
  for (auto need = needs_.begin(); need != needs_end; ++need) open += *need;
  for (std::size_t i = 0; i < capacity_.size(); ++i)
    if (tally_.count(NodeId{i}) == 0) open -= free_of(NodeId{i});
  for (const auto& [node, tally] : tally_)
    if (free_of(node) + tally.freed >= smallest)
      candidates.push_back({free_of(node) + tally.freed, tally.first_seen, node});
  std::sort(candidates.begin(), candidates.end(), [](const NodeRoom& a, const NodeRoom& b) {
    return a.room != b.room ? a.room < b.room : a.first_seen < b.first_seen;
  });
  std::size_t k = 0;
  for (; open > 0 && k < candidates.size(); ++k) open -= candidates[k].room;
  if (open > 0) return false;
  for (std::size_t step = 1;; step *= 2) {
    std::unordered_set<NodeId> nodes;
    for (std::size_t i = 0; i < k; ++i) nodes.insert(candidates[i].node);
    const std::vector<Chosen> chosen = units_on(nodes);
    if (could_do(chosen, count) && simulate(chosen, count)) return true;
    if (k >= candidates.size()) return false;
    k = std::min(k + step, candidates.size());
  }
}

// The added units on these nodes; with each, those of its job that leave before it.
std::vector<RoomMaker::Chosen> RoomMaker::units_on(const std::unordered_set<NodeId>& nodes) const {
  std::vector<Chosen> chosen;
  std::unordered_set<JobId> jobs;
  for (auto unit = added_.rbegin(); unit != added_.rend(); ++unit) {
    const auto& tasks = (*unit)->tasks;
    const bool there = std::any_of(tasks.begin(), tasks.end(),
                                   [&](const VictimTask& t) { return nodes.count(t.node) > 0; });
    if (!there && jobs.count((*unit)->job) == 0) continue;
    jobs.insert((*unit)->job);
    chosen.push_back({*unit});
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

bool RoomMaker::could_do(const std::vector<Chosen>& chosen, std::size_t count) const {
  if (need_ == 0) return true;
  std::unordered_map<NodeId, std::int64_t> freed;
  for (const Chosen& units : chosen)
    for (const Unit* unit : units)
      for (const VictimTask& task : unit->tasks) freed[task.node] += task.amounts[kShareGpu];
  std::int64_t slots = slots_;
  for (const auto& [node, tally] : tally_) {
    const auto it = freed.find(node);
    slots -= slots_of(free_of(node) + tally.freed);
    slots += slots_of(free_of(node) + (it == freed.end() ? 0 : it->second));
  }
  return slots >= static_cast<std::int64_t>(count);
}

bool RoomMaker::simulate(const std::vector<Chosen>& chosen, std::size_t count) {
  Simulation::Ask ask{
      ask_.job,
      {ask_.members.begin(), ask_.members.begin() + static_cast<std::ptrdiff_t>(count)},
      {},
      nullptr,
      ask_.nobody_lost,
      false};
  last_ = recorded_;
  last_.insert(last_.end(), chosen.begin(), chosen.end());
  TaskMarks listed;
  NodeSet among = base_;
  for (const Chosen& units : last_)
    for (const Unit* unit : units)
      for (const VictimTask& task : unit->tasks) {
        if (listed.has(task.id)) continue;
        listed.set(task.id);
        ask.victims.push_back(task);
        among[task.node.index()] = true;
      }
  if (ask.victims.empty()) return false;
  std::vector<TaskId> ids;
  for (const VictimTask& task : ask.victims) ids.push_back(task.id);
  std::sort(ids.begin(), ids.end());
  Hash scenario;
  scenario.add(count);
  for (const TaskId id : ids) scenario.add(id.v);
  if (failed_.count(scenario.value()) > 0) return false;
  ask.among = &among;
  ++simulations_;
  if (simulation_.run(trial_, ask) && ask_.verdict(count, simulation_)) return true;
  trial_.rollback(0);
  // Where nobody loses anything, nobody is wronged if the job chooses first.
  ask.job_first = ask_.nobody_lost;
  if (ask.job_first && simulation_.run(trial_, ask) && ask_.verdict(count, simulation_))
    return true;
  trial_.rollback(0);
  failed_.insert(scenario.value());
  return false;
}

}  // namespace gs
