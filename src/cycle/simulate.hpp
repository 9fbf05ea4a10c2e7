// Simulation: what would happen if these tasks left for that job?
//
// They all leave; then they and the waiting job are placed anew, in the order in which they would
// be served. Who finds its own place again runs on; who finds another one is moved; who finds none
// is lost. In the end, whoever left although nobody took its old place stays there.
//
// Only those that left come back, so nobody has more afterwards than before. A move is a start like
// any other: limits hold for it. Who is over a limit already (it was lowered) can stay or go, but
// not move.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cycle/cycle.hpp"
#include "cycle/victims.hpp"

namespace gs {

class Simulation {
 public:
  struct Ask {
    JobId job;
    std::vector<Member> members;  // of the job, to be placed
    std::vector<VictimTask> victims;
    const NodeSet* among = nullptr;
    bool nobody_lost = false;  // stop as soon as somebody is
    bool job_first = false;    // the job chooses before those that make room for it
  };
  explicit Simulation(CycleContext& context) : context_(context) {}

  // True: the job has its place, in the trial. False: the caller rolls the trial back.
  bool run(Trial& trial, const Ask& ask);

  // Of the last run, in the order in which they left.
  const std::vector<VictimTask>& victims() const { return victims_; }
  const std::vector<VictimTask>& lost() const { return lost_; }
  // Those that don't just run on: lost, or with another place.
  bool is_needed(const VictimTask& task) const { return needed_.has(task.id); }
  int moved() const { return moved_; }

 private:
  void evict(Trial& trial, const Ask& ask);
  bool serve(Trial& trial, const Ask& ask);
  bool come_back(Trial& trial, const Ask& ask, JobId job);
  std::vector<Member> those_that_left(JobId job, std::vector<Member> members) const;
  bool over_limit(JobId job);
  bool moves_within_limits();
  void let_stay(Trial& trial, const Ask& ask);
  void take_stock(const Ask& ask);

  CycleContext& context_;
  TaskMarks evicted_;
  TaskMarks needed_;
  std::unordered_set<std::uint64_t> left_;         // members that left and have no place yet
  std::unordered_map<JobId, int> left_of_;         // how many of each job
  std::unordered_map<TenantId, bool> over_limit_;  // before anybody leaves
  std::unordered_set<std::uint64_t> hopeless_;     // tenant and shape that found none
  std::vector<VictimTask> victims_;
  std::vector<VictimTask> lost_;
  int moved_ = 0;
};

}  // namespace gs
