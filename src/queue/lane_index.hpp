// LaneIndex: finds the lane of a kind of job by the hash of the kind.
//
// A flat table with linear probing, since every job that joins the queue comes past here: one look
// at the table, and one at the lane that it names. Lanes are never taken out.
// Invariant: at least half of the slots are free, so a search ends soon.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace gs {

using LaneId = Id<struct LaneTag>;

class LaneIndex {
 public:
  // Invalid if there is none; `is_it(LaneId)` tells those of equal hash apart.
  template <typename IsIt>
  LaneId find(std::uint32_t hash, IsIt is_it) const {
    for (std::size_t i = hash & mask(); slots_[i].lane.valid(); i = (i + 1) & mask())
      if (slots_[i].hash == hash && is_it(slots_[i].lane)) return slots_[i].lane;
    return LaneId{};
  }

  void add(std::uint32_t hash, LaneId lane) {
    if (++count_ * 2 > slots_.size()) grow();
    put({hash, lane});
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    LaneId lane;  // invalid: free
  };
  std::size_t mask() const { return slots_.size() - 1; }

  void put(const Slot& slot) {
    std::size_t i = slot.hash & mask();
    while (slots_[i].lane.valid()) i = (i + 1) & mask();
    slots_[i] = slot;
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& slot : old)
      if (slot.lane.valid()) put(slot);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two
  std::size_t count_ = 0;
};

}  // namespace gs
