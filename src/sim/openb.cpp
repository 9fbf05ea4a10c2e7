#include "sim/openb.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

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

Check as_published(const Mean& mean, const std::vector<Run>& runs, const Published& published) {
  int compared = 0;
  double off = 0;
  for (const Run& run : runs) {
    const auto known = published.allocation.find({run.workload, run.policy, run.seed});
    if (run.workload != mean.workload || run.policy != mean.policy ||
        known == published.allocation.end())
      continue;
    ++compared;
    for (const int bin : {100, 130})
      off = std::max(off, std::abs(at(run.allocation, bin) - at(known->second, bin)));
  }
  if (compared == 0) return {};
  return {fmt::format("{} {}: as published on {} of {} seeds, at most {:.2f} points off",
                      mean.workload, mean.policy, compared, mean.seeds, off),
          off <= kTolerance};
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

// On a terminal only, on stderr: what is running, and how much of all is done.
class Progress {
 public:
  explicit Progress(std::size_t runs) : runs_(runs), on_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (on_) fmt::print(stderr, "\r\033[K");
  }
  void show(const std::string& what, double part) {
    if (!on_) return;
    const double done = (static_cast<double>(finished_) + part) / static_cast<double>(runs_);
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(done * kWidth);
    fmt::print(stderr, "\r\033[K[{:<{}}] {:3.0f} %  {}",
               std::string(static_cast<std::size_t>(filled), '#'), kWidth, done * 100, what);
    std::fflush(stderr);
  }
  void next() { ++finished_; }

 private:
  std::size_t runs_;
  std::size_t finished_ = 0;
  bool on_;
};

Result<std::vector<Run>> run_all(const Options& options) {
  const Result<std::vector<TraceNode>> nodes = read_nodes(options.folder);
  if (!nodes) return nodes.error();
  std::vector<std::string> names = options.workloads;
  if (names.empty()) {
    Result<std::vector<std::string>> all = list_workloads(options.folder);
    if (!all) return all.error();
    names = std::move(*all);
  }
  std::vector<Workload> workloads;
  std::size_t total = 0;
  for (const std::string& name : names) {
    Result<Workload> workload = read_workload(options.folder, name);
    if (!workload) return workload.error();
    for (const int seed : options.seeds)
      if (!workload->arrivals.contains(seed))
        return not_found(fmt::format("workload {}: no arrivals for seed {}", name, seed));
    total += options.seeds.empty() ? workload->arrivals.size() : options.seeds.size();
    workloads.push_back(std::move(*workload));
  }
  std::vector<Run> runs;
  Progress progress(total * options.policies.size());
  for (const Workload& workload : workloads)
    for (const std::string& policy : options.policies) {
      std::vector<int> seeds = options.seeds;
      if (seeds.empty())
        for (const auto& [seed, order] : workload.arrivals) seeds.push_back(seed);
      for (const int seed : seeds) {
        const std::string what = fmt::format("{} {} seed {}", workload.name, policy, seed);
        Result<Run> one =
            run(*nodes, workload, policy, seed, [&](double part) { progress.show(what, part); });
        if (!one) return Error{one.error().code, fmt::format("{}: {}", what, one.error().message)};
        runs.push_back(std::move(*one));
        progress.next();
      }
    }
  return runs;
}

}  // namespace

std::vector<Check> check(const std::vector<Run>& runs, const Published& published) {
  std::vector<Check> checks;
  const std::vector<Mean> means = means_of(runs);
  for (const Mean& mean : means) {
    if (Check same = as_published(mean, runs, published); !same.text.empty())
      checks.push_back(std::move(same));
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
  for (const std::string& policy : options.policies)
    if (find_node_policy(policy) == nullptr)
      return refuse(not_found(fmt::format("there is no policy '{}'", policy)));
  const Result<Published> published = read_published(options.folder);
  if (!published) return refuse(published.error());
  const Result<std::vector<Run>> runs = run_all(options);
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
  options->policies = {openb::kPolicies.begin(), openb::kPolicies.end()};
  CLI::App* command = sim.add_subcommand(
      "openb", "GPU allocation and fragmentation of a filling cluster, against published figures");
  command->add_option("folder", options->folder, "Folder with nodes, pods/ and arrivals/")
      ->required();
  command->add_option("--workload", options->workloads, "Only this one; may be given repeatedly");
  command->add_option("--policy", options->policies, "Only this one; may be given repeatedly");
  command->add_option("--seed", options->seeds, "Only this one; may be given repeatedly");
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->add_flag("--csv", options->csv, "One line per run as CSV");
  command->callback([options, &exit_code] { exit_code = openb::run_openb(*options); });
}

}  // namespace gs
