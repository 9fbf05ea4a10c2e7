#include "wire/kube/lease.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/gpu_mask.hpp"
#include "base/hash.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr std::size_t kMaxName = 253;
constexpr int kWhole = 1000;

Status read_holders(const std::string& text, Lease& lease) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  if (!json->is_array()) return invalid("must be a list");
  for (const Json& element : *json) {
    GpuHolder& holder = lease.holders.emplace_back();
    ObjectReader in(element);
    in.required("uid", holder.pod_uid);
    in.optional("milli", holder.milli);
    in.optional("memoryMiB", holder.memory_mib);
    in.optional("mig", holder.mig);
    in.optional("group", holder.group);
    in.optional("by", holder.scheduler);
    in.optional("gpuMemoryMiB", holder.gpu_memory_mib);
    if (Status status = in.finish(); !status) return status;
  }
  return ok_status();
}

void read_spec(Cursor& in, Lease& lease) {
  in.object([&](std::string_view field) {
    if (field == "holderIdentity") in.read(lease.holder);
    if (field == "leaseDurationSeconds") in.read(lease.duration_s);
    if (field == "acquireTime") read(in, lease.acquired);
    if (field == "renewTime") read(in, lease.renewed);
    if (field == "leaseTransitions") in.read(lease.transitions);
  });
}

// Node and id stand in annotations: a name may end in digits itself.
void read_gpu(Lease& lease) {
  const std::string* node = lease.meta.annotation(kLeaseNodeAnnotation);
  const std::string* gpu = lease.meta.annotation(kLeaseGpuAnnotation);
  if (node == nullptr || gpu == nullptr) return;
  int id = -1;
  const auto [end, error] = std::from_chars(gpu->data(), gpu->data() + gpu->size(), id);
  if (error != std::errc{} || end != gpu->data() + gpu->size() || id < 0 || id >= kMaxGpusPerNode)
    return;
  lease.node = *node;
  lease.gpu = id;
}

// Who does not say how much memory it takes has as much of it as of the compute. Where they know
// different amounts of the GPU, the least counts.
bool memory_suffices(const std::vector<GpuHolder>& holders) {
  std::int64_t there = 0, taken = 0;
  for (const GpuHolder& holder : holders)
    if (holder.gpu_memory_mib > 0)
      there = there == 0 ? holder.gpu_memory_mib : std::min(there, holder.gpu_memory_mib);
  if (there == 0) return true;  // nobody can say: compute decides
  for (const GpuHolder& holder : holders)
    if (holder.mig.empty())
      taken += holder.memory_mib > 0 ? holder.memory_mib : holder.milli * there / kWhole;
  return taken <= there;
}

}  // namespace

std::string gpu_lease_name(const std::string& node, int gpu) {
  std::string name = fmt::format("gpu-{}-{}", node, gpu);
  if (name.size() <= kMaxName) return name;
  const std::string tail = fmt::format(".{:016x}-{}", Hash{}.add(node).value(), gpu);
  return name.substr(0, kMaxName - tail.size()) + tail;
}

Result<Lease> decode_lease(std::string_view text) {
  Lease lease;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, lease.meta);
    if (field == "spec") read_spec(in, lease);
  });
  if (const Status status = in.finish(); !status) return status.error();
  read_gpu(lease);
  if (const std::string* holders = lease.meta.annotation(kHoldersAnnotation)) {
    if (const Status status = read_holders(*holders, lease); !status)
      return invalid("lease " + lease.meta.key() + ": annotation " + kHoldersAnnotation + ": " +
                     status.error().message);
  } else if (lease.gpu >= 0 && !lease.holder.empty()) {
    lease.holders.push_back({lease.holder, 1000, 0, {}, {}, {}});
  }
  return lease;
}

bool may_join(const Lease& lease, const GpuHolder& newcomer) {
  if (!newcomer.group.empty())
    return std::all_of(lease.holders.begin(), lease.holders.end(),
                       [&](const GpuHolder& holder) { return holder.group == newcomer.group; });
  if (newcomer.is_alone()) return false;
  std::vector<GpuHolder> all = lease.holders;
  all.push_back(newcomer);
  int milli = 0;
  for (const GpuHolder& holder : all) {
    if (holder.is_alone() || !holder.group.empty()) return false;
    milli += holder.mig.empty() ? holder.milli : 0;
  }
  return milli <= kWhole && memory_suffices(all);
}

}  // namespace gs::kube
