// Everything an operator can set about decisions. Part of the command log: same log, same effects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "model/request.hpp"

namespace gs {

struct ScoringWeights {
  double resource_availability = 0.4;
  double topology_alignment = 0.3;
  double domain_utilization = 0.2;
  double historical_performance = 0.1;
};

// A kind of task that is expected, where that is known beforehand.
struct TypicalTask {
  std::int64_t cpu_milli = 0;
  int gpus = 0;
  int milli = 0;                    // of each GPU
  std::vector<std::string> models;  // any of these; empty: any model
  double share = 0;                 // 0..1, of all tasks
};

// How a gang that wishes nothing about its place is laid out over the network.
enum class GangLayout : std::uint8_t {
  LeastHarm,  // fewest and nearest domains, and those whose loss hurts later gangs least
  BestFit,    // plain best fit on every level, to compare with
};

struct Config {
  Strategy strategy = Strategy::Balanced;
  // How `balanced` judges a node: "default", or a published policy to compare with ("fgd",
  // "bestfit").
  std::string node_policy = "default";
  std::vector<TypicalTask> typical_tasks;  // for "fgd"; empty: what has been learned
  ScoringWeights weights;
  // Gangs without a topology wish lie as near together as can be; off: task by task, as the
  // strategy says.
  bool implicit_topology = true;
  GangLayout gang_layout = GangLayout::LeastHarm;
  std::vector<std::string> phases;  // names in order; empty: the default list
  double aging_per_hour = 60.0;     // priority points that an hour of waiting is worth
  int tier_step = 100;              // priority points between two tiers
  Duration usage_half_life = hours(24);
  int reservations = 10;  // jobs with a reservation; 1: EASY, 0: off
  bool preemption = true;
  bool reclaim = true;
  bool consolidation = false;
  int max_moves = 64;  // tasks that one consolidation may move
  bool gang_scheduling = true;
  bool thermal_aware = true;
  int thermal_threshold_c = 75;
  int thermal_hysteresis_c = 5;
  int max_nodes_per_leaf = 0;  // of one job; 0: no bound
  int max_gpus_per_leaf = 0;
  bool refuse_never = true;    // refuse at once what no node of this cluster could ever hold
  std::int64_t max_queue = 0;  // waiting jobs in all; 0: no bound
};

Status validate(const Config& config);

}  // namespace gs
