// Line: the jobs of one lane, first come first served.
//
// What orders two jobs of a line is in the entry itself, so walking along it never looks at the
// jobs. A job that leaves from the middle leaves a tombstone behind; tombstones go when they reach
// the front, or when there are as many as jobs and room is needed.
//
// Invariants: entries are sorted by (submitted, seq), each pair is there at most once, tombstones
// included, and the first entry is a job. Joining at the end and leaving from the front cost O(1),
// joining elsewhere O(log n + distance to the nearer end), leaving from the middle O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace gs {

class Line {
 public:
  struct Entry {
    Instant submitted;
    std::uint64_t seq = 0;
    JobId job;  // invalid: a tombstone
  };

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // Null if nobody waits.
  const Entry* front() const { return size_ == 0 ? nullptr : &entries_[head_]; }
  // The first job behind this place, which may be taken or not; null if there is none.
  const Entry* after(Instant submitted, std::uint64_t seq) const;

  void join(const Entry& entry);
  void leave_front();
  void leave(Instant submitted, std::uint64_t seq);  // must be here

 private:
  using Place = std::vector<Entry>::iterator;
  void insert(Place at, const Entry& entry);
  void bury(Entry& entry);
  void drop_tombstones();

  std::vector<Entry> entries_;
  std::uint32_t head_ = 0;  // entries before it mean nothing
  std::uint32_t size_ = 0;  // jobs
  Instant latest_;          // no entry was submitted later: saves a look at the last one
};

}  // namespace gs
