// What one task needs and wishes. Two tasks with equal requests have the same Shape and share
// answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/node.hpp"
#include "model/resources.hpp"

namespace gs {

enum class Sharing : std::uint8_t { Exclusive, Shared, Mig };
enum class DevicePolicy : std::uint8_t { Best, Contiguous, Spread, PreferIds };
enum class TopologyMode : std::uint8_t { Ignore, Preferred, Required };
enum class Wish : std::uint8_t { None, Preferred, Required };
enum class Strategy : std::uint8_t { Default, Balanced, Consolidated, Distributed };

struct MigAsk {
  std::string profile;
  int count = 1;
  bool operator==(const MigAsk&) const = default;
};

struct GpuRequest {
  int count = 0;  // devices; a shared request takes its part of each of them
  Sharing sharing = Sharing::Exclusive;
  int milli = 0;                    // Shared: compute part of each GPU; 0: follows from memory
  std::int64_t memory_mib = 0;      // Shared: memory of each GPU; 0: follows from milli
  std::vector<MigAsk> mig;          // Mig
  std::vector<std::string> models;  // any of these; empty: any model
  std::int64_t min_memory_mib = 0;  // size of each GPU
  // What a whole GPU counts for in its tenant's memory quota; -1: all the memory that it has.
  std::int64_t quota_memory_mib = -1;
  DevicePolicy policy = DevicePolicy::Best;
  std::vector<int> prefer_ids;
  TopologyMode topology = TopologyMode::Ignore;  // of the devices inside the node
  int min_bandwidth_gbps = 0;                    // over every pair of the set
  // Exactly these devices. Tasks of one job may share a pinned device, and so may tasks of jobs
  // with the same (not empty) pin_group; who may name which group is for the caller to decide.
  std::vector<int> pinned_ids;
  std::string pin_group;
  bool operator==(const GpuRequest&) const = default;
};

enum class LabelOp : std::uint8_t { In, NotIn, Exists, NotExists, Gt, Lt };

struct LabelTerm {
  std::string key;
  LabelOp op = LabelOp::In;
  std::vector<std::string> values;
  bool operator==(const LabelTerm&) const = default;
};
using LabelTerms = std::vector<LabelTerm>;  // all of them

struct PreferredTerms {
  int weight = 1;  // 1..100
  LabelTerms terms;
  bool operator==(const PreferredTerms&) const = default;
};

struct Toleration {
  std::string key;  // empty with exists: tolerates everything
  std::string value;
  bool exists = false;  // any value
  bool any_effect = true;
  TaintEffect effect = TaintEffect::NoSchedule;
  bool operator==(const Toleration&) const = default;
};

struct TaskRequest {
  GpuRequest gpu;
  Resources resources;
  Labels selector;
  std::vector<LabelTerms> affinity;  // required: any of these; empty: no demand
  std::vector<PreferredTerms> preferred_affinity;
  std::vector<Toleration> tolerations;
  std::vector<std::string> only_nodes;  // by name; empty: all
  Wish rdma = Wish::None;
  Wish cufile = Wish::None;
  int min_network_gbps = 0;  // of the node's RDMA ports together
  Strategy strategy = Strategy::Default;
  std::string preferred_domain;  // name of a domain of any level
  bool latency_sensitive = false;
  bool operator==(const TaskRequest&) const = default;
};

Status validate(const TaskRequest& request);
bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
bool matches(const LabelTerms& terms, const Labels& labels);

}  // namespace gs
