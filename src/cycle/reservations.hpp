// Reservations: when and where will a job that can't start now have its room?
//
// The first jobs in order that don't fit get one each: the earliest instant at which they fit once
// everything has gone that is expected to be gone by then, the reservations before them standing.
// Work without any runtime estimate is never expected to go.
//
// While others are placed behind them, each reservation holds the room that it needs over and above
// what will have come free by its start (holds.hpp). Work that ends before a reservation starts may
// use what that one holds, as far as no other one needs it. Nothing of this outlives the phase:
// reservations are made anew each cycle, so a wrong estimate costs time, never correctness.
//
// A plan of the last cycle stays unless the job can start earlier.
//
// Invariant: outside of a phase no hold is in the books.
#pragma once

#include <vector>

#include "cycle/attempt.hpp"
#include "cycle/cycle.hpp"
#include "cycle/holds.hpp"

namespace gs {

class Reservations {
 public:
  explicit Reservations(CycleContext& context);
  Reservations(const Reservations&) = delete;
  Reservations& operator=(const Reservations&) = delete;

  // Finds the earliest start for the job and holds its room; false if no end that is known helps.
  bool reserve(JobId job, const std::vector<Member>& members);

  struct Behind {
    Attempt attempt;
    bool only_holds = false;  // it would fit if nothing were reserved
  };
  // Places the members where they delay no reservation.
  Behind place_behind(Trial& trial, JobId job, const std::vector<Member>& members);

  bool empty() const { return made_.empty(); }
  Plans plans() const;  // for the next cycle

 private:
  struct Made {
    Reservation value;
    std::vector<Plan::Place> places;
    std::vector<Holds::Need> needs;  // until they are held
    bool forecast = false;           // nobody knows how MIG GPUs will be cut by then
  };
  // What changes at an instant: tasks that will have gone by then, or a reservation that has run
  // out.
  struct Event {
    Instant at;
    TaskId task;           // of a running job, or
    std::size_t made = 0;  // the end of this reservation
  };

  std::vector<Event> events() const;
  void plan(const Trial& trial, std::size_t mark, Made& made);
  Hold hold_on(NodeId node, const std::vector<const Task*>& tasks) const;
  Instant end_of(JobId job, Instant start) const;
  bool search(JobId job, const std::vector<Member>& members);

  CycleContext& context_;
  Holds holds_;
  std::vector<Made> made_;
  Made found_;  // by the last search
};

}  // namespace gs
