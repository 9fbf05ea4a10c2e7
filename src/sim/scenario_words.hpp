// The vocabulary of scenario files: which key of which line sets which field of the model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/job.hpp"
#include "model/node.hpp"
#include "model/tenant.hpp"
#include "sim/scenario_text.hpp"
#include "sim/world.hpp"

namespace gs::scenario {

// A job as written, and how long it really runs (the engine is not told).
struct ScriptedJob {
  Job job;
  std::optional<Duration> duration;
};

// Each reads a block whose head is `<verb> [name] key=value...`; `before` is what a second line
// about the same thing starts from.
Result<Config> read_config(const Block& block, Config before);
Result<WorldOptions> read_world(const Block& block, WorldOptions before);
Result<Node> read_node(const Block& block, Node before);
Result<Tenant> read_tenant(const Block& block, Tenant before);
Result<ScriptedJob> read_job(const Block& block);

struct GpuReport {
  std::optional<Health> health;
  std::optional<int> temperature_c;
};
Result<GpuReport> read_gpu_report(const Line& line);

// Every key there is, as `line key`, so that the manual can be checked for completeness.
std::vector<std::string> scenario_keys();
void add_cluster_keys(std::vector<std::string>& keys);
void add_job_keys(std::vector<std::string>& keys);

}  // namespace gs::scenario
