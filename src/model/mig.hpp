// MIG geometry: which profiles a GPU can be cut into, and where each may lie.
//
// A GPU has eight memory slots. A profile takes `size` adjacent slots and may start only at the
// slots in `starts`; a set of instances is legal if and only if their slots don't overlap (the
// allowed starts already keep the seven compute slices from being oversubscribed).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gs {

struct MigProfile {
  std::string name;         // "1g.10gb"
  int compute = 1;          // compute slices, of 7
  int size = 1;             // memory slots, of 8
  std::uint8_t starts = 0;  // bit i: may start at slot i
  bool media = false;       // "+me": at most one on a GPU
};

// Profiles of A100 (40/80 GB), H100 (80/94/96 GB) and H200; empty for GPUs without MIG.
const std::vector<MigProfile>& mig_profiles(const std::string& gpu_model, std::int64_t memory_mib);
const MigProfile* find_mig_profile(const std::string& gpu_model, std::int64_t memory_mib,
                                   const std::string& profile);
// "nvidia.com/mig-1g.10gb" and "1g.10gb" name the same profile.
std::string canonical_mig_profile(const std::string& name);
// Compute slices written in the name; 0 if it is not a profile name.
int mig_compute_slices(const std::string& profile);

constexpr std::uint8_t mig_slots(int start, int size) {
  return static_cast<std::uint8_t>(((1 << size) - 1) << start);
}

}  // namespace gs
