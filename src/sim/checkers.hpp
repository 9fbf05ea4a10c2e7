// Checkers: what must hold whatever happens, judged by commands and effects alone (mirror.hpp,
// rules.hpp).
//
//   facts       news about a task that runs is never refused
//   places      nobody gets what somebody else has, or what its request rules out
//   quota       a tenant's limits hold whenever something of it starts
//   gangs       whole or absent; required domains, slices and leaf limits honoured
//   evictions   only for somebody who gets the room, who could not do without it, and who may
//   states      a job's state is what its tasks say; deadlines are kept
//   progress    nothing waits that could run; nobody behind a reserved start pushes it back
//
// One finding is enough: what follows it is not judged any more.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/mirror.hpp"

namespace gs {

struct Finding {
  std::string checker;
  std::string text;
  Instant at;
};

class Checkers {
 public:
  // After each command and each tick.
  void observe(const LogEntry& entry);
  // When the world has come to rest at this instant.
  void at_rest(Instant now);
  // When the world has come to rest: does anything wait that could run? Costs more than the rest.
  void check_idle_room();
  // Jobs that have started since this was asked last.
  std::set<std::string> take_started() { return std::exchange(fresh_, {}); }
  void report(const char* checker, std::string text);

  const std::optional<Finding>& finding() const { return finding_; }
  Mirror& mirror() { return mirror_; }
  std::uint64_t starts() const { return starts_; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Eviction {
    std::string job;
    std::string for_job;
    std::vector<Rank> tasks;
    StopReason reason = StopReason::Preempted;
  };

  void command(const LogEntry& entry);
  void effect(const StartTasks& effect);
  void effect(const StopTasks& effect);
  void effect(const NominateTasks& effect);
  void effect(const JobChanged& effect);

  void check_place(const MirrorJob& job, const TaskPlace& place);
  void check_quota(const MirrorJob& job);
  void check_gang(const MirrorJob& job);
  void check_domains(const MirrorJob& job);
  void check_whole(const MirrorJob& job);
  void check_eviction(const Eviction& eviction);
  void check_rights(const Eviction& eviction, const MirrorJob& victim, const MirrorJob& gets);
  bool whole_with(const MirrorJob& job, const std::vector<Rank>& kept) const;
  void check_need(const Eviction& eviction, const MirrorJob& victim);
  bool somebody_placed_in(const MirrorTenant& t, const MirrorJob& beside);
  bool over_limit_with(const MirrorTenant& t, const Eviction& eviction, const MirrorJob& victim);
  void check_turns(const Eviction& eviction, const MirrorJob& victim, const MirrorJob& gets);
  void check_state(const MirrorJob& job);
  void check_deadlines(const MirrorJob& job);
  bool quota_allows(const MirrorJob& job) const;

  Mirror mirror_;
  std::optional<Finding> finding_;
  Instant now_;
  std::uint64_t starts_ = 0;
  std::uint64_t evictions_ = 0;
  std::set<std::string> started_;        // this turn: jobs of which tasks started
  std::set<std::string> placed_;         // this turn: and those that were promised places
  std::vector<Eviction> evicted_;        // this turn
  std::set<std::string> unsettled_;      // jobs that changed since the last rest
  std::set<std::string> with_deadline_;  // jobs whose deadlines are looked at
  std::set<std::string> fresh_;          // jobs that have started since somebody asked
  std::set<std::pair<std::string, std::string>> evicted_for_;  // who, for whom
};

}  // namespace gs
