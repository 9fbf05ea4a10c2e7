#include "wire/kube/topology_ask.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest_word.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr const char* kGpuCount = "topology.scheduler/gpu-count";
constexpr const char* kPreferredDomain = kPreferredDomainAnnotation;
constexpr const char* kNetworkBandwidth = "topology.scheduler/network-bandwidth";
constexpr const char* kLatencySensitive = "topology.scheduler/latency-sensitive";
constexpr const char* kPlacementStrategy = "topology.scheduler/placement-strategy";
const std::vector<const char*> kKnown = {kGpuCount, kPreferredDomain, kNetworkBandwidth,
                                         kLatencySensitive, kPlacementStrategy};

constexpr std::pair<std::string_view, Strategy> kStrategies[] = {
    {"consolidated", Strategy::Consolidated},
    {"distributed", Strategy::Distributed},
    {"balanced", Strategy::Balanced}};
constexpr std::pair<std::string_view, int> kUnits[] = {
    {"Gb", 1}, {"Gbps", 1}, {"Gb/s", 1}, {"GB/s", 8}, {"GBps", 8}};
constexpr int kMaxTotalGpus = 1'000'000;
constexpr int kMaxGbps = 1'000'000;

Error refused(const char* name, const std::string& value, const std::string& rule) {
  return invalid("annotation " + std::string(name) + " " + rule + ", got '" + value.substr(0, 80) +
                 "'");
}

Status read_gpu_count(const Found& found, TopologyAsk& ask) {
  const std::string& text = *found.value;
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1 ||
      count > kMaxTotalGpus)
    return refused(kGpuCount, text, "must be a whole number from 1 to 1000000, such as \"8\"");
  ask.gpu_count = count;
  ask.counted_on = found.on;
  return ok_status();
}

Status read_bandwidth(const std::string& text, TopologyAsk& ask) {
  const Result<int> gbps = parse_bandwidth_gbps(text);
  if (!gbps) return refused(kNetworkBandwidth, text, gbps.error().message);
  ask.network_gbps = *gbps;
  return ok_status();
}

Status read_latency(const std::string& text, TopologyAsk& ask) {
  if (text != "true" && text != "false")
    return refused(kLatencySensitive, text, "must be \"true\" or \"false\"");
  ask.latency_sensitive = text == "true";
  return ok_status();
}

Status read_strategy(const std::string& text, TopologyAsk& ask) {
  const auto* known = std::find_if(std::begin(kStrategies), std::end(kStrategies),
                                   [&](const auto& pair) { return pair.first == text; });
  if (known == std::end(kStrategies))
    return refused(kPlacementStrategy, text, "must be one of consolidated, distributed, balanced");
  ask.strategy = known->second;
  return ok_status();
}

Status read_domain(const std::string& text, TopologyAsk& ask) {
  if (text.empty())
    return refused(kPreferredDomain, text, "must name a domain, such as \"leaf-1\"");
  ask.preferred_domain = text;
  return ok_status();
}

void note_unknown(const Labels& annotations, std::vector<std::string>& notes) {
  for (const auto& [name, value] : annotations) {
    if (!name.starts_with(kTopologyPrefix)) continue;
    if (std::any_of(kKnown.begin(), kKnown.end(), [&](const char* k) { return name == k; }))
      continue;
    const std::string_view meant = nearest_word(name, kKnown);
    notes.push_back("annotation " + name + " is not known and has no effect" +
                    (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
  }
}

}  // namespace

Result<int> parse_bandwidth_gbps(std::string_view text) {
  const Error bad = invalid("must be a bandwidth such as 100Gb, 100Gbps or 12.5GB/s");
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || text.starts_with('-') || !(number <= kMaxGbps)) return bad;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto* known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                   [&](const auto& pair) { return pair.first == unit; });
  if (known == std::end(kUnits)) return bad;
  const double gbps = number * known->second;
  const int whole = static_cast<int>(gbps);
  return static_cast<double>(whole) < gbps ? whole + 1 : whole;
}

Found find_annotation(const Meta& pod, const Owners& owners, const std::string& name) {
  if (const std::string* value = pod.annotation(name)) return {value, nullptr};
  for (const Workload* owner : owners)
    if (const std::string* value = owner->meta.annotation(name)) return {value, owner};
  return {};
}

const Workload* whole_of(const Owners& owners) {
  if (owners.empty()) return nullptr;
  const bool deployed = owners.size() > 1 && owners[0]->kind == "ReplicaSet";
  return owners[deployed ? 1 : 0];
}

Result<TopologyAsk> read_topology_ask(const Meta& pod, const Owners& owners) {
  TopologyAsk ask;
  const auto with = [&](const char* name, auto&& read_value) -> Status {
    const Found found = find_annotation(pod, owners, name);
    return found.value == nullptr ? ok_status() : read_value(found);
  };
  const Status steps[] = {
      with(kGpuCount, [&](const Found& f) { return read_gpu_count(f, ask); }),
      with(kPreferredDomain, [&](const Found& f) { return read_domain(*f.value, ask); }),
      with(kNetworkBandwidth, [&](const Found& f) { return read_bandwidth(*f.value, ask); }),
      with(kLatencySensitive, [&](const Found& f) { return read_latency(*f.value, ask); }),
      with(kPlacementStrategy, [&](const Found& f) { return read_strategy(*f.value, ask); })};
  for (const Status& step : steps)
    if (!step) return step.error();
  note_unknown(pod.annotations, ask.unknown);
  for (const Workload* owner : owners) note_unknown(owner->meta.annotations, ask.unknown);
  return ask;
}

}  // namespace gs::kube
