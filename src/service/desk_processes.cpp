// Processes: an attempt begins, its processes start, stop and end; what that means for the job.
#include <algorithm>

#include "base/check.hpp"
#include "model/mig.hpp"
#include "service/desk.hpp"
#include "wire/job_json.hpp"

namespace gs {
namespace {

constexpr int kFirstMasterPort = 20'000;
constexpr int kMasterPorts = 12'000;  // below the range that the kernel gives out by itself

std::string ids_text(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text.append(text.empty() ? "" : ",").append(std::to_string(id));
  return text;
}

// Milli-GPUs that a process holds.
std::int64_t milli_of(const Process& process, const JobSpec& spec) {
  std::int64_t milli = 0;
  for (const MigPlace& place : process.mig)
    milli += std::int64_t{mig_compute_slices(place.profile)} * kWholeGpu / 7;
  const int each = spec.gpu_milli > 0 ? spec.gpu_milli : kWholeGpu;
  return milli + static_cast<std::int64_t>(process.gpus.size()) * each;
}

bool is_success(const TaskReport& report) {
  return report.state == TaskReport::State::Exited && report.exit_code == 0 && report.signal == 0 &&
         !report.timed_out && !report.out_of_memory;
}

std::string end_text(const TaskReport& report) {
  if (!report.message.empty()) return report.message;
  if (report.out_of_memory) return "ran out of memory";
  if (report.timed_out) return "ran longer than max_runtime_minutes";
  if (report.signal != 0) return "ended by signal " + std::to_string(report.signal);
  return "exited with code " + std::to_string(report.exit_code);
}

}  // namespace

// ---------------------------------------------------------------- starting

void Desk::launch(LiveJob& live) {
  std::size_t there = live.places.size();
  for (const Process& process : live.done) there += process.tasks.size();
  const bool complete = static_cast<int>(there) == live.tasks;
  if (!complete || !live.leaving.empty() || live.row.ending != Ending::None) return;
  // The members of a gang know each other: when one gets another place, all start over.
  for (Process& process : live.processes)
    if (process.state != ProcessState::Stopping)
      order_stop(live, process, "starts over with its gang");
  if (live.processes.empty()) begin_attempt(live);
}

void Desk::begin_attempt(LiveJob& live) {
  JobRow& row = live.row;
  if (++row.attempt == 1) queue_waits_s_.push_back((now_ - row.submitted).seconds());
  row.scheduled = now_;
  row.started = Instant{};
  row.exit_code.reset();
  row.signal = 0;
  row.message.clear();
  live.evicted_by.reset();
  set_state(live, RunState::Scheduled);
  std::sort(live.places.begin(), live.places.end(), [](const TaskPlace& a, const TaskPlace& b) {
    return std::pair(a.task.group, a.task.rank) < std::pair(b.task.group, b.task.rank);
  });
  for (const TaskPlace& place : live.places) {
    auto at = std::find_if(live.processes.begin(), live.processes.end(),
                           [&](const Process& process) { return process.node == place.node; });
    if (at == live.processes.end()) {
      Process process;
      process.rank = static_cast<int>(live.processes.size());
      process.allocation =
          job_id(row.seq) + "." + std::to_string(row.attempt) + "." + std::to_string(process.rank);
      process.node = place.node;
      process.since = now_;
      at = live.processes.insert(live.processes.end(), std::move(process));
      allocations_[at->allocation] = row.seq;
    }
    at->gpus.insert(at->gpus.end(), place.gpus.begin(), place.gpus.end());
    at->mig.insert(at->mig.end(), place.mig.begin(), place.mig.end());
    at->tasks.emplace_back(place.task.group, place.task.rank);
  }
  for (Process& process : live.processes) {
    const auto node = nodes_.find(process.node);
    for (const int gpu : process.gpus)
      if (node != nodes_.end()) {
        const auto& gpus = node->second.row.node.gpus;
        const auto index = static_cast<std::size_t>(gpu);
        process.gpu_ids.push_back(index < gpus.size() ? gpus[index].uuid : std::string{});
      }
    note_devices(live, process);
    orders_.push_back({process.node, start_order(live, process)});
    event("job.scheduled", &live, process.node,
          "attempt " + std::to_string(row.attempt) + " on " + process.node +
              (process.gpus.empty()       ? ""
               : process.gpus.size() == 1 ? ", GPU "
                                          : ", GPUs ") +
              ids_text(process.gpus));
  }
  touch(live);
}

// A wish for other devices than those it got is said aloud.
void Desk::note_devices(LiveJob& live, const Process& process) {
  const std::string* wish = find_label(spec_of(live).environment, "CUDA_VISIBLE_DEVICES");
  if (wish == nullptr) return;
  const std::string given = ids_text(process.gpus);
  if (*wish == given) return;
  event("job.devices", &live, process.node,
        "CUDA_VISIBLE_DEVICES=" + *wish + " was asked for; the job's GPUs are " + given +
            ", which is what it sees");
}

StartOrder Desk::start_order(LiveJob& live, const Process& process) {
  StartOrder order;
  const JobSpec& spec = spec_of(live);
  order.process = process;
  order.spec = live.spec;
  order.job = job_id(live.row.seq);
  order.attempt = live.row.attempt;
  order.world_size = static_cast<int>(live.processes.size() + live.done.size());
  if (const auto node = nodes_.find(live.processes.front().node); node != nodes_.end())
    order.master_addr = node->second.row.address;
  order.master_port =
      kFirstMasterPort + static_cast<int>((live.row.seq / 1000 + live.row.attempt) % kMasterPorts);
  const auto tasks = static_cast<std::int64_t>(process.tasks.size());
  order.cpu_milli = spec.cpu_milli / live.tasks * tasks;
  order.memory_mb = spec.memory_mb / live.tasks * tasks;
  order.max_runtime = minutes(spec.max_runtime_minutes);
  order.grace = options_.grace;
  return order;
}

void Desk::started(LiveJob& live, Process& process) {
  if (process.state != ProcessState::Assigned) return;
  process.state = ProcessState::Running;
  touch(live);
  const std::string id = job_id(live.row.seq);
  for (const auto& [group, rank] : process.tasks) (void)tell(TaskStarted{{id, group, rank}});
  const bool all =
      std::all_of(live.processes.begin(), live.processes.end(),
                  [](const Process& other) { return other.state == ProcessState::Running; });
  if (!all || live.row.state != RunState::Scheduled) return;
  set_state(live, RunState::Running);
  live.row.started = now_;
  event("job.running", &live, process.node, "runs");
}

// ---------------------------------------------------------------- stopping and ending

Process* Desk::process_of(LiveJob& live, const TaskRef& task) {
  const std::pair<int, int> key{task.group, task.rank};
  for (Process& process : live.processes)
    if (std::find(process.tasks.begin(), process.tasks.end(), key) != process.tasks.end())
      return &process;
  return nullptr;
}

void Desk::order_stop(LiveJob& live, Process& process, const std::string& reason) {
  if (process.state == ProcessState::Stopping) return;
  process.state = ProcessState::Stopping;
  touch(live);
  orders_.push_back({process.node, StopOrder{process.allocation, options_.grace, reason}});
}

void Desk::give_back(std::vector<TaskPlace>& from, const TaskRef& task, Outcome outcome) {
  const auto at = std::find_if(from.begin(), from.end(),
                               [&](const TaskPlace& place) { return place.task == task; });
  CHECK_MSG(at != from.end(), "a task gives back a place that it does not have");
  const TaskRef ended = at->task;
  from.erase(at);
  (void)tell(TaskEnded{ended, outcome});
}

// It may have ended long before we heard of it: nobody pays for the time in which we were away.
Instant Desk::end_of(const TaskReport& report, Instant since) const {
  return std::max(since, now_ - report.ended_ago);
}

void Desk::charge(LiveJob& live, const Process& process, Instant until) {
  const std::int64_t milli = milli_of(process, spec_of(live));
  TenantRow& tenant = tenants_.at(live.row.tenant);
  const double rate = tenant.spec.cost_per_gpu_hour > 0 ? tenant.spec.cost_per_gpu_hour
                                                        : options_.cost_per_gpu_hour;
  constexpr std::int64_t kHour = 3'600'000;
  // Hour by hour, so that the bill of a day holds what was used on that day.
  for (std::int64_t from = process.since.ms; from < until.ms;) {
    const std::int64_t hour = from / kHour * kHour;
    const std::int64_t to = std::min(until.ms, hour + kHour);
    const std::int64_t gpu_ms = (to - from) * milli / kWholeGpu;
    const double cost = static_cast<double>(gpu_ms) / static_cast<double>(kHour) * rate;
    if (gpu_ms > 0) batch_.usage.push_back({live.row.tenant, Instant{hour}, gpu_ms, 0, cost});
    live.row.gpu_ms += gpu_ms;
    tenant.gpu_ms += gpu_ms;
    tenant.total_cost += cost;
    from = to;
  }
  touched_tenants_.insert(live.row.tenant);
  touch(live);
}

void Desk::reported(const std::string& node, const TaskReport& report) {
  const auto known = allocations_.find(report.allocation);
  LiveJob* live = known == allocations_.end() ? nullptr : find(known->second);
  const auto at = live == nullptr ? std::vector<Process>::iterator{}
                                  : std::find_if(live->processes.begin(), live->processes.end(),
                                                 [&](const Process& process) {
                                                   return process.allocation == report.allocation &&
                                                          process.node == node;
                                                 });
  if (live == nullptr || at == live->processes.end()) {
    // Nothing of ours any more: it must not run, and its end is of no interest.
    if (report.state == TaskReport::State::Running) {
      stop_stray(node, report);
    } else {
      release_stray(node, report.allocation);
      orders_.push_back({node, ForgetOrder{report.allocation}});
      ended_unheard(node, report);
    }
    return;
  }
  if (report.state == TaskReport::State::Running) {
    started(*live, *at);
  } else {
    // One that is quick may have ended before anybody saw it run.
    if (report.state == TaskReport::State::Exited && !report.stopped && !report.lease_lost)
      started(*live, *at);
    const Process process = std::move(*at);
    live->processes.erase(at);
    allocations_.erase(process.allocation);
    orders_.push_back({node, ForgetOrder{process.allocation}});
    gone(live->row.seq, process, report);
  }
  settle();
}

void Desk::gone(std::int64_t job, const Process& process, const TaskReport& report) {
  LiveJob& live = *find(job);
  live.ended_at = end_of(report, process.since);
  charge(live, process, *live.ended_at);
  const std::string id = job_id(job);
  const bool told = report.stopped || report.lease_lost;
  if (!told && report.state == TaskReport::State::Exited &&
      std::none_of(process.tasks.begin(), process.tasks.end(), [&](const auto& task) {
        return std::any_of(live.leaving.begin(), live.leaving.end(), [&](const TaskPlace& place) {
          return std::pair(place.task.group, place.task.rank) == task;
        });
      })) {
    ended_by_itself(live, process, report);
  } else if (report.state == TaskReport::State::Refused && live.leaving.empty()) {
    ended_by_itself(live, process, report);
  } else {
    for (const auto& [group, rank] : process.tasks) {
      const TaskRef task{id, group, rank};
      const auto is_task = [&](const TaskPlace& place) { return place.task == task; };
      if (std::any_of(live.leaving.begin(), live.leaving.end(), is_task)) {
        const bool success = !told && report.exit_code == 0 && report.signal == 0 &&
                             report.state == TaskReport::State::Exited;
        give_back(live.leaving, task, success ? Outcome::Succeeded : Outcome::Stopped);
      } else if (process.state != ProcessState::Stopping) {
        // Nobody told it to: its agent was out of touch, or an order of an earlier life.
        give_back(live.places, task, report.lease_lost ? Outcome::NodeLost : Outcome::Stopped);
      }
    }
  }
  settle();
  if (LiveJob* still = find(job); still != nullptr) {
    still->ended_at.reset();
    launch(*still);
  }
}

void Desk::ended_by_itself(LiveJob& live, const Process& process, const TaskReport& report) {
  const std::string id = job_id(live.row.seq);
  if (is_success(report)) {
    if (!live.row.exit_code) live.row.exit_code = 0;
    live.done.push_back(process);
    live.done.back().state = ProcessState::Ended;
    touch(live);
    for (const auto& [group, rank] : process.tasks)
      give_back(live.places, {id, group, rank}, Outcome::Succeeded);
    return;
  }
  if (report.signal == 0) live.row.exit_code = report.exit_code;
  live.row.signal = report.signal;
  live.row.message = (process.rank > 0 || !live.processes.empty()
                          ? "rank " + std::to_string(process.rank) + " on " + process.node + ": "
                          : std::string{}) +
                     end_text(report);
  live.row.ending = Ending::Fail;
  touch(live);
  // One that fails takes the job along; the engine stops the others, those of this process too.
  const auto& [group, rank] = process.tasks.front();
  give_back(live.places, {id, group, rank}, Outcome::Failed);
}

// Its node was lost and is back: what ended there meanwhile, and has not been started again, need
// not run twice. A gang has to start over as a whole.
void Desk::ended_unheard(const std::string& node, const TaskReport& report) {
  LiveJob* live = find(report.allocation.substr(0, report.allocation.find('.')));
  if (live == nullptr || report.state != TaskReport::State::Exited) return;
  if (report.stopped || report.lease_lost || live->row.ending != Ending::None) return;
  if (!live->processes.empty() || !live->places.empty()) return;
  const Result<std::vector<Process>> had = decode_processes(live->row.placement);
  if (!had || had->size() != 1 || had->front().allocation != report.allocation ||
      had->front().node != node)
    return;
  const bool success = is_success(report);
  JobRow& row = live->row;
  if (report.signal == 0) row.exit_code = report.exit_code;
  row.signal = report.signal;
  if (!success) row.message = end_text(report);
  if (row.started == Instant{}) row.started = row.scheduled;
  live->ended_as = success ? RunState::Completed : RunState::Failed;
  live->ended_at = end_of(report, row.started);
  (void)tell(CancelJob{job_id(row.seq)});  // it waits: it ends at once
  settle();
}

void Desk::for_each_process(const std::function<void(const JobRow&, const Process&)>& visit) const {
  for (const auto& [allocation, seq] : allocations_)
    for (const Process& process : jobs_.at(seq).processes)
      if (process.allocation == allocation) visit(jobs_.at(seq).row, process);
}

}  // namespace gs
