#include "wire/kube/claim.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<const char*, DevicePolicy> kPolicies[] = {
    {"contiguous", DevicePolicy::Contiguous},
    {"spread", DevicePolicy::Spread},
    {"preferIds", DevicePolicy::PreferIds}};
constexpr std::pair<const char*, Sharing> kSharing[] = {
    {"Exclusive", Sharing::Exclusive}, {"Shared", Sharing::Shared}, {"MIG", Sharing::Mig}};
constexpr std::pair<const char*, TopologyMode> kModes[] = {{"Required", TopologyMode::Required},
                                                           {"Preferred", TopologyMode::Preferred},
                                                           {"Ignore", TopologyMode::Ignore}};
constexpr std::pair<const char*, Wish> kWishes[] = {
    {"Required", Wish::Required}, {"Preferred", Wish::Preferred}, {"Ignore", Wish::None}};
constexpr std::pair<const char*, LabelOp> kOperators[] = {
    {"In", LabelOp::In},         {"NotIn", LabelOp::NotIn},
    {"Exists", LabelOp::Exists}, {"DoesNotExist", LabelOp::NotExists},
    {"Gt", LabelOp::Gt},         {"Lt", LabelOp::Lt}};
constexpr std::pair<const char*, ClaimPhase> kPhases[] = {{"Pending", ClaimPhase::Pending},
                                                          {"Reserved", ClaimPhase::Reserved},
                                                          {"Bound", ClaimPhase::Bound},
                                                          {"Failed", ClaimPhase::Failed}};

void check_range(ObjectReader& in, const char* field, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value < least || value > most)
    in.fail(field, "must be " + std::to_string(least) + ".." + std::to_string(most) + ", got " +
                       std::to_string(value));
}

void check_prefer_ids(ObjectReader& in, const GpuRequest& gpu) {
  const bool wanted = gpu.policy == DevicePolicy::PreferIds;
  if (wanted && gpu.prefer_ids.empty())
    in.fail("preferIds", "must list at least one GPU id with policy preferIds");
  if (!wanted && !gpu.prefer_ids.empty()) in.fail("preferIds", "needs policy preferIds");
  GpuMask seen = 0;
  for (const int id : gpu.prefer_ids) {
    check_range(in, "preferIds", id, 0, kMaxGpusPerNode - 1);
    if (in.failed()) return;
    if ((seen & gpu_bit(id)) != 0) in.fail("preferIds", "lists " + std::to_string(id) + " twice");
    seen |= gpu_bit(id);
  }
}

void read_mig(ObjectReader& in, GpuClaim& claim) {
  GpuRequest& gpu = claim.gpu;
  std::string profile;
  if (in.optional("migProfile", profile))
    gpu.mig.push_back({canonical_mig_profile(profile), claim.count});
  in.array("migProfiles", [&](ObjectReader& one) {
    MigAsk& ask = gpu.mig.emplace_back();
    one.required("profile", ask.profile);
    one.optional("count", ask.count);
    check_range(one, "count", ask.count, 1, kMaxGpusPerNode);
    ask.profile = canonical_mig_profile(ask.profile);
  });
  for (const MigAsk& ask : gpu.mig)
    if (mig_compute_slices(ask.profile) == 0)
      in.fail("migProfile", "'" + ask.profile + "' is no profile; they look like 1g.10gb");
  if (gpu.sharing != Sharing::Mig && !gpu.mig.empty())
    in.fail("migProfile", "needs exclusivity MIG");
  if (gpu.sharing == Sharing::Mig && gpu.mig.empty())
    in.fail("migProfile", "is required with exclusivity MIG, for example 1g.10gb");
  if (gpu.sharing == Sharing::Mig && gpu.policy != DevicePolicy::Best)
    in.fail("policy", "is about whole or shared GPUs; leave it out with exclusivity MIG");
}

void read_share(ObjectReader& in, GpuRequest& gpu) {
  const bool milli = in.optional("shareMilli", gpu.milli);
  const bool memory = in.optional("memoryMiB", gpu.memory_mib);
  if (milli) check_range(in, "shareMilli", gpu.milli, 1, kWholeGpu);
  if (memory) check_range(in, "memoryMiB", gpu.memory_mib, 1, kMaxAmount);
  if (gpu.sharing == Sharing::Shared && !milli && !memory) gpu.milli = kDefaultShareMilli;
  if (gpu.sharing != Sharing::Shared && (milli || memory))
    in.fail(milli ? "shareMilli" : "memoryMiB", "needs exclusivity Shared");
}

void read_devices(ObjectReader& in, GpuClaim& claim) {
  GpuRequest& gpu = claim.gpu;
  in.one_of("exclusivity", gpu.sharing, kSharing);
  if (in.required("count", claim.count)) check_range(in, "count", claim.count, 1, kMaxGpusPerNode);
  in.one_of("policy", gpu.policy, kPolicies);
  in.optional("preferIds", gpu.prefer_ids);
  in.optional("models", gpu.models);
  if (in.optional("minMemoryMiB", gpu.min_memory_mib))
    check_range(in, "minMemoryMiB", gpu.min_memory_mib, 0, kMaxAmount);
  read_share(in, gpu);
  read_mig(in, claim);
  check_prefer_ids(in, gpu);
  gpu.count = gpu.sharing == Sharing::Mig ? 0 : claim.count;
}

void read_selector(ObjectReader& in, LabelTerms& terms) {
  Labels labels;
  in.optional("matchLabels", labels);
  for (auto& [key, value] : labels) terms.push_back({key, LabelOp::In, {value}});
  in.array("matchExpressions", [&](ObjectReader& one) {
    LabelTerm& term = terms.emplace_back();
    one.required("key", term.key);
    one.one_of("operator", term.op, kOperators);
    one.optional("values", term.values);
  });
}

void read_topology(ObjectReader& in, GpuRequest& gpu) {
  gpu.topology = TopologyMode::Preferred;
  in.one_of("mode", gpu.topology, kModes);
  if (in.optional("minBandwidthGBps", gpu.min_bandwidth_gbps))
    check_range(in, "minBandwidthGBps", gpu.min_bandwidth_gbps, 0, 1'000'000);
}

void read_fabric(ObjectReader& in, GpuClaim& claim) {
  in.one_of("rdma", claim.rdma, kWishes);
  in.one_of("cufile", claim.cufile, kWishes);
  if (in.optional("minNetworkGbps", claim.min_network_gbps))
    check_range(in, "minNetworkGbps", claim.min_network_gbps, 0, 1'000'000);
}

void read_status(Cursor& in, ClaimStatus& status) {
  const auto read_ids = [&](std::vector<int>& ids) {
    in.array([&] { in.read(ids.emplace_back()); });
  };
  in.object([&](std::string_view field) {
    if (field == "phase") {
      std::string word;
      in.read(word);
      for (const auto& [known, phase] : kPhases)
        if (word == known) status.phase = phase;
    }
    if (field == "nodeName") in.read(status.node);
    if (field == "gpuIds") read_ids(status.gpus);
    if (field == "allocated") in.read(status.allocated);
    if (field == "message") in.read(status.message);
    if (field == "allocations")
      in.array([&] {
        ClaimAllocation& one = status.allocations.emplace_back();
        in.object([&](std::string_view inner) {
          if (inner == "pod") in.read(one.pod);
          if (inner == "nodeName") in.read(one.node);
          if (inner == "gpuIds") read_ids(one.gpus);
          if (inner == "migProfiles") in.read(one.mig);
        });
      });
  });
}

}  // namespace

const char* phase_word(ClaimPhase phase) {
  for (const auto& [word, known] : kPhases)
    if (known == phase) return word;
  return "";
}

Status read_claim_spec(const Json& spec, GpuClaim& claim) {
  ObjectReader in(spec, "spec");
  if (!in.has("devices")) in.fail("devices", "is required, with at least devices.count");
  in.object("devices", [&](ObjectReader& inner) { read_devices(inner, claim); });
  in.object("selector", [&](ObjectReader& inner) { read_selector(inner, claim.nodes); });
  in.object("topology", [&](ObjectReader& inner) { read_topology(inner, claim.gpu); });
  if (claim.gpu.sharing == Sharing::Mig && claim.gpu.topology == TopologyMode::Required)
    in.fail("topology.mode",
            "must not be Required with exclusivity MIG: nothing connects instances");
  in.object("fabric", [&](ObjectReader& inner) { read_fabric(inner, claim); });
  in.optional("gangRef", claim.gang);
  return in.finish();
}

Result<GpuClaim> decode_claim(std::string_view text) {
  GpuClaim claim;
  std::string_view spec = "null";
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, claim.meta);
    if (field == "spec") spec = in.raw();
    if (field == "status") read_status(in, claim.status);
  });
  if (const Status status = in.finish(); !status) return status.error();
  const Result<Json> json = parse_json(spec);
  if (!json) return json.error();
  if (const Status status = read_claim_spec(*json, claim); !status) return status.error();
  return claim;
}

Result<ClaimStatus> decode_claim_status(std::string_view text) {
  ClaimStatus shown;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "status") read_status(in, shown);
  });
  if (const Status status = in.finish(); !status) return status.error();
  return shown;
}

std::string allocated_text(const std::string& node, const std::vector<int>& gpus) {
  std::string text = node + ":";
  for (std::size_t i = 0; i < gpus.size(); ++i)
    text.append(i == 0 ? "" : ",").append(std::to_string(gpus[i]));
  return text;
}

Result<Allocated> parse_allocated(std::string_view text) {
  const Error bad =
      invalid("'" + std::string(text) + "' is no allocation; they look like node-a:0,1");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad;
  Allocated allocated{std::string(text.substr(0, colon)), {}};
  const char* at = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  while (at != end) {
    int id = -1;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc{} || id < 0 || id >= kMaxGpusPerNode) return bad;
    allocated.gpus.push_back(id);
    at = stop;
    if (at == end) break;
    if (*at != ',' || ++at == end) return bad;
  }
  return allocated;
}

}  // namespace gs::kube
