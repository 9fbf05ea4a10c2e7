#include "wire/kube/scheduling_map.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/gpu_mask.hpp"
#include "base/hash.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr int kMaxIndex = 99'999;
constexpr std::size_t kMaxNodeName = 253;

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r";
  const std::size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::optional<int> number_of(std::string_view text, int most) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number >= 0 && number <= most ? std::optional(number) : std::nullopt;
}

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

// Lower-case letters, digits, '-' and '.', as names of nodes are.
bool is_node_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNodeName) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

Status read_gpus(std::string_view text, std::vector<int>& gpus) {
  if (trimmed(text).empty()) return invalid("no GPU ids after the ':'");
  GpuMask seen = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view one = trimmed(text.substr(0, comma));
    const std::optional<int> id = number_of(one, kMaxGpusPerNode - 1);
    if (!id) return invalid(quoted(one) + " is no GPU id; ids are 0..63, separated by commas");
    if ((seen & gpu_bit(*id)) != 0)
      return invalid("GPU " + std::to_string(*id) + " is listed twice");
    seen |= gpu_bit(*id);
    gpus.push_back(*id);
    if (comma == std::string_view::npos) return ok_status();
    text.remove_prefix(comma + 1);
  }
}

Status read_entry(std::string_view text, MapEntry& entry) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.find(':', equals == std::string_view::npos ? 0 : equals);
  if (equals == std::string_view::npos || colon == std::string_view::npos)
    return invalid("must look like <index>=<node>:<gpu ids>, for example 0=node1:0,1");
  const std::string_view index = trimmed(text.substr(0, equals));
  const std::optional<int> number = number_of(index, kMaxIndex);
  if (!number) return invalid(quoted(index) + " is no pod index; they are 0..99999");
  const std::string_view node = trimmed(text.substr(equals + 1, colon - equals - 1));
  if (!is_node_name(node)) return invalid(quoted(node) + " is no name of a node");
  entry.index = *number;
  entry.node = node;
  return read_gpus(text.substr(colon + 1), entry.gpus);
}

std::string at_line(int line) {
  return std::string(kMapAnnotation) + " line " + std::to_string(line);
}

}  // namespace

const MapEntry* SchedulingMap::find(int index) const {
  const auto it = std::lower_bound(entries.begin(), entries.end(), index,
                                   [](const MapEntry& e, int i) { return e.index < i; });
  return it != entries.end() && it->index == index ? &*it : nullptr;
}

Result<SchedulingMap> parse_scheduling_map(std::string_view text) {
  SchedulingMap map;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view one = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty() || one.front() == '#') continue;
    MapEntry& entry = map.entries.emplace_back();
    entry.line = line;
    if (const Status status = read_entry(one, entry); !status)
      return invalid(at_line(line) + " (" + quoted(one) + "): " + status.error().message);
  }
  if (map.entries.empty())
    return invalid(std::string(kMapAnnotation) + " has no line; they look like 0=node1:0,1");
  std::stable_sort(map.entries.begin(), map.entries.end(),
                   [](const MapEntry& a, const MapEntry& b) { return a.index < b.index; });
  const auto twice =
      std::adjacent_find(map.entries.begin(), map.entries.end(),
                         [](const MapEntry& a, const MapEntry& b) { return a.index == b.index; });
  if (twice != map.entries.end())
    return invalid(at_line((twice + 1)->line) + ": index " + std::to_string(twice->index) +
                   " is given in line " + std::to_string(twice->line) + " already");
  return map;
}

Status check_entry(const MapEntry& entry, const gs::Node* node) {
  if (node == nullptr)
    return invalid(at_line(entry.line) + ": there is no node '" + entry.node + "'");
  for (const int id : entry.gpus)
    if (id >= static_cast<int>(node->gpus.size()))
      return invalid(
          at_line(entry.line) + ": node '" + entry.node + "' has no GPU " + std::to_string(id) +
          (node->gpus.empty() ? "; it has none at all"
                              : "; its GPUs are 0.." + std::to_string(node->gpus.size() - 1)));
  return ok_status();
}

std::optional<int> pod_index(const Meta& pod) {
  constexpr const char* kCompletion = "batch.kubernetes.io/job-completion-index";
  for (const std::string* text : {pod.annotation(kCompletion), pod.label(kCompletion),
                                  pod.label("apps.kubernetes.io/pod-index")})
    if (text != nullptr) return number_of(*text, kMaxIndex);
  const OwnerReference* owner = pod.controller();
  if (owner != nullptr && (owner->kind == "Job" || owner->kind == "ReplicaSet" ||
                           owner->kind == "DaemonSet" || !pod.name.starts_with(owner->name + "-")))
    return std::nullopt;  // what ends their names is random
  const std::size_t dash = pod.name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  if (owner != nullptr && dash != owner->name.size()) return std::nullopt;
  return number_of(std::string_view(pod.name).substr(dash + 1), kMaxIndex);
}

std::string share_group(const std::string& ns, const std::string& owner, const SchedulingMap& map,
                        const MapEntry& entry) {
  const bool shared =
      std::any_of(map.entries.begin(), map.entries.end(), [&](const MapEntry& other) {
        return other.index != entry.index && other.node == entry.node &&
               std::find_first_of(other.gpus.begin(), other.gpus.end(), entry.gpus.begin(),
                                  entry.gpus.end()) != other.gpus.end();
      });
  if (!shared) return {};
  if (!owner.empty()) return ns + "/" + owner;
  Hash lines;
  for (const MapEntry& line : map.entries) {
    lines.add(static_cast<std::uint64_t>(line.index)).add(line.node);
    for (const int gpu : line.gpus) lines.add(static_cast<std::uint64_t>(gpu));
  }
  return fmt::format("{}/map-{:016x}", ns, lines.value());
}

}  // namespace gs::kube
