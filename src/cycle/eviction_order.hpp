// EvictionOrder: who has been evicted for whom, so that nobody evicts in turn.
//
// Fair shares move with demand, with use and with every job that comes or ends. Whatever rule says
// who may take from whom, tomorrow it may say the opposite, and two jobs would take each other's
// room for ever. So evictions are remembered: a job never evicts one that it was evicted for,
// directly or through others, until that one has ended or one of the two has got another priority.
//
// Invariant: "was evicted for" has no cycle. Hence a set of jobs that neither grows nor shrinks
// comes to rest: who was evicted for nobody is never evicted again, so it evicts once at most; then
// the same holds for those that were evicted for these alone, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/hash.hpp"

namespace gs {

class EvictionOrder {
 public:
  using Seq = std::uint64_t;  // JobRecord::seq: never used again

  void note(Seq victim, Seq for_job);
  void erase(Seq victim, Seq for_job);  // it did not happen after all
  // Those that this job must not evict: it was evicted for them, directly or through others.
  std::set<Seq> above(Seq job) const;
  // For whom it was evicted itself, in order.
  std::vector<Seq> evicted_for(Seq job) const;
  // It has ended, or the order does not hold for it any more.
  void forget(Seq job);
  void add_to(Hash& hash) const;

 private:
  std::map<Seq, std::set<Seq>> evictors_;  // by victim
  std::map<Seq, std::set<Seq>> victims_;   // the same the other way round
};

}  // namespace gs
