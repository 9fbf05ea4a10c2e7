// Starting over: rows become the engine's state again. What ran keeps its place; agents will tell
// whether it still runs.
#include <algorithm>

#include "base/check.hpp"
#include "service/desk.hpp"
#include "wire/job_json.hpp"

namespace gs {
namespace {

void must(const Status& status) {
  CHECK_MSG(status.ok(), "what is stored is refused: " + status.error().message);
}

}  // namespace

void Desk::load(const Loaded& loaded, Instant now) {
  CHECK_MSG(jobs_.empty() && tenants_.empty() && nodes_.empty(), "load into a desk in use");
  now_ = now;
  turn_ = loaded.turn;
  last_seq_ = loaded.last_seq;
  last_event_ = loaded.last_event;
  // What was accepted once stays accepted: bounds that have become narrower since then hold only
  // for what comes.
  Config open = options_.config;
  open.max_queue = 0;
  must(tell(SetConfig{open}));
  for (const TenantRow& row : loaded.tenants) {
    total_jobs_ += row.total_jobs;
    if (!row.active) continue;
    Tenant unbound = to_tenant(row.spec, tenant_id(row.seq));
    unbound.limit = Quota{};
    unbound.max_queue = kUnlimited;
    must(tell(PutTenant{unbound}));
    tenants_.emplace(unbound.id, row);
  }
  for (const NodeRow& row : loaded.nodes) {
    NodeStatus node;
    node.row = row;
    node.last_contact = now;  // its lease counts from now: that is certainly not too early
    (void)put_node(node);
    nodes_.emplace(row.node.name, std::move(node));
  }
  for (const JobRow& row : loaded.jobs) load_job(row);
  for (const auto& [id, row] : tenants_) must(tell(PutTenant{to_tenant(row.spec, id)}));
  must(tell(SetConfig{options_.config}));
  settle();
}

void Desk::load_job(const JobRow& row) {
  LiveJob live;
  live.row = row;
  const JobSpec spec = spec_of(live);
  for (const Dependency& dependency : spec.depends_on)
    if (const auto seq = job_seq(dependency.job); seq && row.attempt == 0) {
      const auto ended = find_ended_(*seq);
      if (ended && *ended && !is_final((*ended)->state)) live.waits_for.insert(*seq);
    }
  must(enter(live, spec));
  const std::int64_t seq = row.seq;
  const bool placed = row.state == RunState::Scheduled || row.state == RunState::Running;
  ++counts_[static_cast<std::size_t>(row.state)];
  for (const std::int64_t other : live.waits_for) dependents_[other].push_back(seq);
  LiveJob& there = jobs_.emplace(seq, std::move(live)).first->second;
  if (placed) adopt(there);
  effects_.clear();  // they tell what the rows say already
  if (LiveJob* still = find(seq); still != nullptr && still->row.ending != Ending::None) {
    (void)tell(CancelJob{job_id(seq)});
    settle();
  }
}

void Desk::adopt(LiveJob& live) {
  Result<std::vector<Process>> processes = decode_processes(live.row.placement);
  CHECK_MSG(processes.ok(), "a stored placement can't be read: " + live.row.placement);
  const std::string id = job_id(live.row.seq);
  // Those that have ended come last: a job of which nothing runs has ended itself.
  std::stable_partition(processes->begin(), processes->end(), [](const Process& process) {
    return process.state != ProcessState::Ended;
  });
  for (Process& process : *processes) {
    const bool ended = process.state == ProcessState::Ended;
    const std::size_t tasks = std::max<std::size_t>(1, process.tasks.size());
    const std::size_t gpus = process.gpus.size() / tasks;
    const std::size_t mig = process.mig.size() / tasks;
    bool held = true;
    for (std::size_t i = 0; i < process.tasks.size(); ++i) {
      TaskPlace place{{id, process.tasks[i].first, process.tasks[i].second}, process.node, {}, {}};
      const auto from = static_cast<std::ptrdiff_t>(i);
      const auto g = static_cast<std::ptrdiff_t>(gpus);
      const auto m = static_cast<std::ptrdiff_t>(mig);
      place.gpus.assign(process.gpus.begin() + from * g, process.gpus.begin() + (from + 1) * g);
      place.mig.assign(process.mig.begin() + from * m, process.mig.begin() + (from + 1) * m);
      const Status told =
          tell(AdoptTask{place.task, place.node, place.gpus, place.mig, process.since, ended});
      held = held && told.ok();
      if (told && !ended) live.places.push_back(std::move(place));
    }
    if (ended) {
      live.done.push_back(std::move(process));
      continue;
    }
    // An eviction that was under way is decided anew; what its agent did already it will tell.
    // What does not fit into the books (somebody changed them by hand) must not go on.
    if (!held)
      process.state = ProcessState::Stopping;
    else if (process.state == ProcessState::Stopping)
      process.state = ProcessState::Running;
    allocations_[process.allocation] = live.row.seq;
    live.processes.push_back(std::move(process));
  }
}

}  // namespace gs
