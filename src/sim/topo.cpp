#include "sim/topo.hpp"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "sim/topo_run.hpp"

namespace gs {
namespace {

using topo::Row;

struct Options {
  std::string folder;
  std::vector<std::string> policies;
  bool json = false, csv = false;
};

void print_json(const std::vector<Row>& rows) {
  nlohmann::json out{{"rows", nlohmann::json::array()}};
  for (const Row& row : rows)
    out["rows"].push_back({{"policy", row.policy},
                           {"leaf_ratio", row.leaf_ratio},
                           {"pod_ratio", row.pod_ratio},
                           {"one_leaf", row.one_leaf},
                           {"hops", row.hops},
                           {"mean_wait_s", row.mean_wait_s}});
  fmt::print("{}\n", out.dump(2));
}

void print_csv(const std::vector<Row>& rows) {
  fmt::print("policy,leaf_ratio,pod_ratio,one_leaf,hops,mean_wait_s\n");
  for (const Row& row : rows)
    fmt::print("{},{:.6f},{:.6f},{:.4f},{:.6f},{:.3f}\n", row.policy, row.leaf_ratio, row.pod_ratio,
               row.one_leaf, row.hops, row.mean_wait_s);
}

// Nearer together on every count, and nobody waits longer.
bool better(const Row& ours, const Row& theirs) {
  return ours.leaf_ratio < theirs.leaf_ratio && ours.pod_ratio < theirs.pod_ratio &&
         ours.one_leaf > theirs.one_leaf && ours.hops < theirs.hops &&
         ours.mean_wait_s <= theirs.mean_wait_s + 1e-6;
}

const Row* find(const std::vector<Row>& rows, const std::string& policy) {
  for (const Row& row : rows)
    if (row.policy == policy) return &row;
  return nullptr;
}

// Nothing to compare counts as well.
bool check(const std::vector<Row>& rows) {
  const Row* ours = find(rows, "default");
  const Row* theirs = find(rows, "tree-best-fit");
  return ours == nullptr || theirs == nullptr || better(*ours, *theirs);
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<14} {:>10} {:>9} {:>9} {:>6} {:>9}\n", "policy", "leaf ratio", "pod ratio",
             "one leaf", "hops", "wait");
  for (const Row& row : rows)
    fmt::print("{:<14} {:>10.3f} {:>9.3f} {:>7.1f} % {:>6.3f} {:>7.1f} s\n", row.policy,
               row.leaf_ratio, row.pod_ratio, row.one_leaf, row.hops, row.mean_wait_s);
  if (rows.size() > 1)
    fmt::print("default is {} tree-best-fit on all four, at no longer a wait\n",
               check(rows) ? "better than" : "NOT better than");
}

int run_topo(const Options& options) {
  const Result<topo::Trace> trace = topo::read_trace(options.folder);
  if (!trace) {
    fmt::print(stderr, "topo: {}\n", trace.error().message);
    return 2;
  }
  const bool bar = isatty(STDERR_FILENO) != 0;
  std::vector<Row> rows;
  for (const std::string& policy : options.policies.empty() ? topo::policies() : options.policies) {
    const Result<Row> row = topo::run(*trace, policy, [&](double done) {
      if (bar) fmt::print(stderr, "\r{:<14} {:3.0f} %", policy, 100 * done);
    });
    if (bar) fmt::print(stderr, "\r{:20}\r", "");
    if (!row) {
      fmt::print(stderr, "topo: {}\n", row.error().message);
      return 2;
    }
    rows.push_back(*row);
  }
  if (options.json)
    print_json(rows);
  else if (options.csv)
    print_csv(rows);
  else
    print_table(rows);
  return check(rows) ? 0 : 1;
}

}  // namespace

void add_topo(CLI::App& sim, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      sim.add_subcommand("topo", "How near together gangs lie on a network, by policy");
  command->add_option("folder", options->folder, "Folder with topo.csv and gang_jobs*.csv[.gz]")
      ->required();
  command->add_option("--policy", options->policies, "Only these")
      ->check(CLI::IsMember(topo::policies()));
  CLI::Option* json = command->add_flag("--json", options->json, "Rows as JSON");
  command->add_flag("--csv", options->csv, "Rows as CSV")->excludes(json);
  command->callback([options, &exit_code] { exit_code = run_topo(*options); });
}

}  // namespace gs
