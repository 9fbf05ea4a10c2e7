// The annotation gpu-scheduling-map: which node and which GPUs the pod of each index gets.
//
//   0=node1:0,1
//   1=node2:2
//
// One line each; blank lines and lines that begin with # don't count. Two indexes may name the same
// GPU: the pods of one owner then share it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/node.hpp"
#include "wire/kube/meta.hpp"

namespace gs::kube {

struct MapEntry {
  int index = 0;
  std::string node;
  std::vector<int> gpus;
  int line = 0;  // from 1, for messages
  bool operator==(const MapEntry&) const = default;
};

struct SchedulingMap {
  std::vector<MapEntry> entries;  // by index
  const MapEntry* find(int index) const;
};

// The error names the line, what stands there, and the rule.
Result<SchedulingMap> parse_scheduling_map(std::string_view text);

// Whether the node is there (nullptr: it is not) and has these GPUs.
Status check_entry(const MapEntry& entry, const gs::Node* node);

// The index that the pod itself carries: a Job's completion index, a StatefulSet's ordinal (label,
// or the end of the name), or the number at the end of the name of a pod that nobody made.
// nullopt: it has none; the lowest that is free among its owner's pods counts.
std::optional<int> pod_index(const Meta& pod);

// With whom a pod of this entry shares its GPUs: the pods of `owner` (a uid; empty: nobody made
// them, so those of the same map), if another line names one of them. Empty: with nobody.
std::string share_group(const std::string& ns, const std::string& owner, const SchedulingMap& map,
                        const MapEntry& entry);

}  // namespace gs::kube
