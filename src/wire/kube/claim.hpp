// GpuClaim (gpu.scheduling/v1): what a pod, or each pod of a gang, wants of GPUs.
//
// The spec is read strictly: a field that does not exist, or a value outside its rule, is refused
// with the field's name. Besides the documented fields there are ours: of `devices` shareMilli and
// memoryMiB (a part of a shared GPU), migProfile and migProfiles, models and minMemoryMiB; and
// `fabric` with rdma, cufile and minNetworkGbps.
#pragma once

#include "base/result.hpp"
#include "model/request.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

enum class ClaimPhase : std::uint8_t { None, Pending, Reserved, Bound, Failed };
const char* phase_word(ClaimPhase phase);  // "" for None

struct ClaimAllocation {  // of one pod
  std::string pod;        // its name
  std::string node;
  std::vector<int> gpus;
  std::vector<std::string> mig;  // profiles, where they are instances
  bool operator==(const ClaimAllocation&) const = default;
};

struct ClaimStatus {
  ClaimPhase phase = ClaimPhase::None;
  std::string node;       // nodeName: of the first
  std::vector<int> gpus;  // gpuIds: of the first
  std::string allocated;  // "node-a:0,1"; several are separated by blanks
  std::string message;
  std::vector<ClaimAllocation> allocations;  // of all
  bool operator==(const ClaimStatus&) const = default;
};

struct GpuClaim {
  Meta meta;
  int count = 0;     // devices, or instances of migProfile
  GpuRequest gpu;    // all that it says of devices
  LabelTerms nodes;  // selector
  std::string gang;  // gangRef
  Wish rdma = Wish::None;
  Wish cufile = Wish::None;
  int min_network_gbps = 0;
  ClaimStatus status;

  bool wants_fabric() const { return rdma != Wish::None || cufile != Wish::None; }
};

// What a Shared claim that does not say how much takes of each GPU.
inline constexpr int kDefaultShareMilli = 100;

Result<GpuClaim> decode_claim(std::string_view text);
// The status alone, of a claim whose spec may be wrong.
Result<ClaimStatus> decode_claim_status(std::string_view text);
// The spec alone, which is what a user writes. Errors name fields from "spec." on.
Status read_claim_spec(const Json& spec, GpuClaim& claim);

// "node-a:0,1": how an allocation is written, in a claim's status and on a pod.
std::string allocated_text(const std::string& node, const std::vector<int>& gpus);
struct Allocated {
  std::string node;
  std::vector<int> gpus;
  bool operator==(const Allocated&) const = default;
};
Result<Allocated> parse_allocated(std::string_view text);

}  // namespace gs::kube
