#include "sim/openb.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "placement/policies/policy.hpp"

namespace gs::openb {
namespace {

constexpr double kTolerance = 0.01 + 1e-9;  // points; the figures have two decimals
constexpr std::array<const char*, 3> kPolicies = {"bestfit", "fgd", "default"};

double at(const Curve& curve, int bin) { return curve[static_cast<std::size_t>(bin)]; }

// Of one workload and policy.
struct Mean {
  std::string workload, policy;
  int seeds = 0;
  double alloc_100 = 0, alloc_130 = 0, frag_100 = 0, frag_130 = 0, failed = 0, failed_8gpu = 0;
};

std::vector<Mean> means_of(const std::vector<Run>& runs) {
  std::vector<Mean> means;
  for (const Run& run : runs) {
    auto mean = std::find_if(means.begin(), means.end(), [&](const Mean& m) {
      return m.workload == run.workload && m.policy == run.policy;
    });
    if (mean == means.end()) mean = means.insert(means.end(), {run.workload, run.policy});
    ++mean->seeds;
    mean->alloc_100 += at(run.allocation, 100);
    mean->alloc_130 += at(run.allocation, 130);
    mean->frag_100 += at(run.fragmentation, 100);
    mean->frag_130 += at(run.fragmentation, 130);
    mean->failed += run.failed;
    mean->failed_8gpu += run.failed_8gpu;
  }
  for (Mean& m : means)
    for (double* sum :
         {&m.alloc_100, &m.alloc_130, &m.frag_100, &m.frag_130, &m.failed, &m.failed_8gpu})
      *sum /= m.seeds;
  return means;
}

const Mean* find(const std::vector<Mean>& means, const std::string& workload, const char* policy) {
  for (const Mean& mean : means)
    if (mean.workload == workload && mean.policy == policy) return &mean;
  return nullptr;
}

// How far a curve is from the published one where that has figures; at least 0.
double farthest(const Curve& ours, const Curve& published) {
  double off = 0;
  for (std::size_t bin = 0; bin < ours.size(); ++bin) {
    if (std::isnan(published[bin])) continue;
    if (std::isnan(ours[bin])) return std::numeric_limits<double>::infinity();
    off = std::max(off, std::abs(ours[bin] - published[bin]));
  }
  return off;
}

// Of one of the two figures, over all seeds that are published.
void check_as_published(const Mean& mean, const std::vector<Run>& runs, const char* what,
                        Curve Run::*figure, const std::map<Published::Key, Curve>& published,
                        std::vector<Check>& checks) {
  int compared = 0;
  int same = 0;
  double off = 0;
  for (const Run& run : runs) {
    const auto known = published.find({run.workload, run.policy, run.seed});
    if (run.workload != mean.workload || run.policy != mean.policy || known == published.end())
      continue;
    const double by = farthest(run.*figure, known->second);
    ++compared;
    same += by <= kTolerance ? 1 : 0;
    off = std::max(off, by);
  }
  if (compared > 0)
    checks.push_back({fmt::format("{} {}: {} as published on {} of {} seeds, at most {:.2f} points "
                                  "off at any percent arrived",
                                  mean.workload, mean.policy, what, same, compared, off),
                      same == compared});
}

// The published figure in the mean of the same seeds; NaN where there is none.
double published_mean(const std::vector<Run>& runs, const Mean& mean,
                      const std::map<Published::Key, Curve>& curves, int bin) {
  double sum = 0;
  int count = 0;
  for (const Run& run : runs) {
    if (run.workload != mean.workload || run.policy != mean.policy) continue;
    const auto known = curves.find({run.workload, run.policy, run.seed});
    if (known == curves.end()) return std::nan("");
    sum += at(known->second, bin);
    ++count;
  }
  return count > 0 ? sum / count : std::nan("");
}

std::string figure(double value, int decimals = 2) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, decimals);
}

void print_table(const std::vector<Run>& runs, const Published& published,
                 const std::vector<Check>& checks) {
  fmt::print("{:<12} {:<8} {:>5}  {:>9} {:>9}  {:>9} {:>9}  {:>8} {:>9}  {:>8} {:>8}\n", "workload",
             "policy", "seeds", "alloc@100", "published", "alloc@130", "published", "frag@130",
             "published", "failed", "8-GPU");
  for (const Mean& m : means_of(runs)) {
    const auto known = [&](const auto& curves, int bin) {
      return figure(published_mean(runs, m, curves, bin));
    };
    fmt::print("{:<12} {:<8} {:>5}  {:>9} {:>9}  {:>9} {:>9}  {:>8} {:>9}  {:>8} {:>8}\n",
               m.workload, m.policy, m.seeds, figure(m.alloc_100), known(published.allocation, 100),
               figure(m.alloc_130), known(published.allocation, 130), figure(m.frag_130),
               known(published.fragmentation, 130), figure(m.failed, 1), figure(m.failed_8gpu, 1));
  }
  fmt::print(
      "\nalloc, frag: % of all GPUs allocated and fragmented when so many % have been asked "
      "for; failed: pods dropped. Means of the seeds.\n\n");
  for (const Check& check : checks)
    fmt::print("{}  {}\n", check.holds ? "ok    " : "FAILED", check.text);
  const auto held =
      std::count_if(checks.begin(), checks.end(), [](const Check& c) { return c.holds; });
  fmt::print("{} passed, {} failed, 0 skipped\n", held,
             static_cast<std::ptrdiff_t>(checks.size()) - held);
}

void print_json(const std::vector<Run>& runs, const std::vector<Check>& checks) {
  nlohmann::json out{{"rows", nlohmann::json::array()}, {"checks", nlohmann::json::array()}};
  for (const Run& run : runs)
    out["rows"].push_back({{"workload", run.workload},
                           {"policy", run.policy},
                           {"seed", run.seed},
                           {"alloc_100", at(run.allocation, 100)},
                           {"alloc_130", at(run.allocation, 130)},
                           {"frag_100", at(run.fragmentation, 100)},
                           {"frag_130", at(run.fragmentation, 130)},
                           {"failed", run.failed},
                           {"failed_8gpu", run.failed_8gpu}});
  for (const Check& check : checks)
    out["checks"].push_back({{"text", check.text}, {"holds", check.holds}});
  fmt::print("{}\n", out.dump(2));
}

void print_csv(const std::vector<Run>& runs) {
  fmt::print("workload,policy,seed,alloc_100,alloc_130,frag_100,frag_130,failed,failed_8gpu\n");
  for (const Run& run : runs)
    fmt::print("{},{},{},{},{},{},{},{},{}\n", run.workload, run.policy, run.seed,
               figure(at(run.allocation, 100)), figure(at(run.allocation, 130)),
               figure(at(run.fragmentation, 100)), figure(at(run.fragmentation, 130)), run.failed,
               run.failed_8gpu);
}

}  // namespace

std::vector<Check> check(const std::vector<Run>& runs, const Published& published) {
  std::vector<Check> checks;
  const std::vector<Mean> means = means_of(runs);
  for (const Mean& mean : means) {
    check_as_published(mean, runs, "allocation", &Run::allocation, published.allocation, checks);
    check_as_published(mean, runs, "fragmentation", &Run::fragmentation, published.fragmentation,
                       checks);
    const Mean* fgd = find(means, mean.workload, "fgd");
    if (mean.policy != "default" || fgd == nullptr) continue;
    checks.push_back(
        {fmt::format("{} default against fgd: allocated {:+.2f} at 100 %, {:+.2f} at 130 %; "
                     "fragmented {:+.2f} at 130 %",
                     mean.workload, mean.alloc_100 - fgd->alloc_100,
                     mean.alloc_130 - fgd->alloc_130, mean.frag_130 - fgd->frag_130),
         mean.alloc_100 > fgd->alloc_100 && mean.alloc_130 > fgd->alloc_130 &&
             mean.frag_130 < fgd->frag_130});
  }
  return checks;
}

int run_openb(const Options& options) {
  const auto refuse = [](const Error& error) {
    fmt::print(stderr, "openb: {}\n", error.message);
    return 2;
  };
  for (const std::string& policy : options.selection.policies)
    if (find_node_policy(policy) == nullptr)
      return refuse(not_found(fmt::format("there is no policy '{}'", policy)));
  const Result<Published> published = read_published(options.selection.folder);
  if (!published) return refuse(published.error());
  const Result<std::vector<Run>> runs = run_all(options.selection);
  if (!runs) return refuse(runs.error());
  const std::vector<Check> checks = check(*runs, *published);
  if (options.json)
    print_json(*runs, checks);
  else if (options.csv)
    print_csv(*runs);
  else
    print_table(*runs, *published, checks);
  const bool all =
      std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.holds; });
  return all ? 0 : 1;
}

}  // namespace gs::openb

namespace gs {

void add_openb(CLI::App& sim, int& exit_code) {
  auto options = std::make_shared<openb::Options>();
  options->selection.policies = {openb::kPolicies.begin(), openb::kPolicies.end()};
  CLI::App* command = sim.add_subcommand(
      "openb", "GPU allocation and fragmentation of a filling cluster, against published figures");
  command->add_option("folder", options->selection.folder, "Folder with nodes, pods/ and arrivals/")
      ->required();
  command->add_option("--workload", options->selection.workloads,
                      "Only this one; may be given repeatedly");
  command->add_option("--policy", options->selection.policies,
                      "Only this one; may be given repeatedly");
  command->add_option("--seed", options->selection.seeds, "Only this one; may be given repeatedly");
  command
      ->add_option("--jobs", options->selection.jobs, "Runs at a time; 0: one for each processor")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->add_flag("--csv", options->csv, "One line per run as CSV");
  command->callback([options, &exit_code] { exit_code = openb::run_openb(*options); });
}

}  // namespace gs
