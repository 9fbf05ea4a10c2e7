#include "sim/faults.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "sim/apart.hpp"
#include "sim/describe.hpp"
#include "sim/interrupt.hpp"
#include "sim/shrink.hpp"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

std::string reproduce(std::uint64_t seed, const FaultsOptions& options) {
  return fmt::format("gpu-scheduler sim faults --seed {} --steps {}", seed, options.steps);
}

// A bar on a terminal, nothing anywhere else.
class Progress {
 public:
  explicit Progress(std::uint64_t all) : all_(all), on_(isatty(STDERR_FILENO) != 0 && all > 1) {}
  ~Progress() {
    if (on_) fmt::print(stderr, "\r{:60}\r", "");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done, std::uint64_t failed) const {
    if (!on_) return;
    const auto width = static_cast<std::size_t>(done * 30 / all_);
    fmt::print(stderr, "\r[{:<30}] {}/{} seeds, {} failed", std::string(width, '#'), done, all_,
               failed);
    std::fflush(stderr);
  }

 private:
  std::uint64_t all_;
  bool on_;
};

std::string to_json(const SeedResult& r) {
  Json j{{"seed", r.seed},
         {"actions", r.actions},
         {"starts", r.starts},
         {"evictions", r.evictions},
         {"effects_hash", r.effects_hash}};
  if (r.finding)
    j["finding"] = {
        {"checker", r.finding->checker}, {"text", r.finding->text}, {"at_ms", r.finding->at.ms}};
  return j.dump();
}

SeedResult from_answer(std::uint64_t seed, const ApartResult& apart) {
  SeedResult r;
  r.seed = seed;
  if (apart.died) {
    r.actions = apart.progress;
    r.finding = Finding{"died", apart.last_words.substr(0, apart.last_words.find('\n')), {}};
    return r;
  }
  const Json j = Json::parse(apart.answer);
  r.actions = j["actions"];
  r.starts = j["starts"];
  r.evictions = j["evictions"];
  r.effects_hash = j["effects_hash"];
  if (j.contains("finding"))
    r.finding =
        Finding{j["finding"]["checker"], j["finding"]["text"], Instant{j["finding"]["at_ms"]}};
  return r;
}

// Every so often a seed is played twice, from scratch.
SeedResult run_checked(std::uint64_t seed, std::uint64_t steps, volatile std::uint64_t* playing) {
  SeedResult result = run_seed(seed, steps, playing);
  if (seed % 16 != 0 || result.finding) return result;
  if (run_seed(seed, steps, playing).effects_hash != result.effects_hash)
    result.finding = Finding{"determinism", "played twice, it came out differently", {}};
  return result;
}

// All seeds, or those that were played when somebody lost patience.
std::vector<SeedResult> run_seeds(const FaultsOptions& options, const Interrupt& interrupt) {
  const Progress progress(options.seeds);
  std::vector<SeedResult> results;
  std::uint64_t failed = 0;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run_all_apart(
      options.seeds, options.jobs > 0 ? options.jobs : cores,
      [&](std::size_t i, volatile std::uint64_t* playing) {
        Interrupt::not_here();
        return to_json(run_checked(options.seed + i, options.steps, playing));
      },
      [&](std::size_t i, const ApartResult& apart) {
        if (interrupt.came() && apart.died) return false;  // Ctrl-C reaches the children too
        results.push_back(from_answer(options.seed + i, apart));
        failed += results.back().finding ? 1 : 0;
        progress.show(results.size(), failed);
        return !interrupt.came();
      });
  std::sort(results.begin(), results.end(),
            [](const SeedResult& a, const SeedResult& b) { return a.seed < b.seed; });
  return results;
}

// ---------------------------------------------------------------- printing

Json shrunk_json(const Shrunk& shrunk) {
  Json lines = Json::array();
  for (const Action& action : shrunk.script.actions) lines.push_back(describe_fully(action));
  return {{"failure", shrunk.failure},
          {"attempts", shrunk.attempts},
          {"done", shrunk.done},
          {"actions", lines}};
}

// The small script, and what the engine answered to each of its actions.
void print_shrunk(const Shrunk& shrunk) {
  if (shrunk.failure.empty()) {
    fmt::print("  played from its list of actions, it does not fail\n");
    return;
  }
  fmt::print("  {} actions are enough ({} attempts{}):\n", shrunk.script.actions.size(),
             shrunk.attempts, shrunk.done ? "" : ", then the time was up");
  for (const Action& action : shrunk.script.actions) fmt::print("    {}\n", describe_fully(action));
  fmt::print("  and this is how it goes:\n");
  std::fflush(stdout);
  (void)run_apart([&](volatile std::uint64_t*) {
    const auto finding = play(shrunk.script, [](World&, const LogEntry& entry) {
      fmt::print("    {}  {}{}\n", describe(entry.now),
                 entry.command ? describe(*entry.command) : "tick",
                 entry.error ? " - refused: " + entry.error->message : "");
      for (const Effect& effect : entry.effects) fmt::print("        {}\n", describe(effect));
      std::fflush(stdout);
    });
    if (finding) fmt::print("    {}: {}\n", finding->checker, finding->text);
    std::fflush(stdout);
    return std::string{};
  });
}

Shrunk shrink_seed(const SeedResult& result, const FaultsOptions& options) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(options.shrink_s);
  const ShrinkLimits limits{3000, [&] { return std::chrono::steady_clock::now() >= until; }};
  Script script = record_seed(result.seed, options.steps, result.actions);
  // A broken book is to be seen as soon as it is broken; nobody else needs recounts.
  if (result.finding->checker != "died") script.verify_every = 64;
  return shrink(std::move(script), failure_of, limits, [&](std::size_t actions, int attempts) {
    if (terminal) fmt::print(stderr, "\r{} actions after {} attempts   \r", actions, attempts);
  });
}

void print_table(const std::vector<SeedResult>& results, const FaultsOptions& options) {
  std::uint64_t failed = 0;
  std::uint64_t actions = 0;
  std::uint64_t starts = 0;
  std::uint64_t evictions = 0;
  for (const SeedResult& r : results) {
    actions += r.actions;
    starts += r.starts;
    evictions += r.evictions;
    if (!r.finding) continue;
    ++failed;
    fmt::print("seed {} fails after {} actions: {}: {}\n  {}\n", r.seed, r.actions,
               r.finding->checker, r.finding->text, reproduce(r.seed, options));
    if (options.shrink) print_shrunk(shrink_seed(r, options));
  }
  fmt::print(
      "{} with {} actions, {} task starts, {} evictions: {}\n",
      plural(static_cast<long long>(results.size()), "seed"), actions, starts, evictions,
      failed == 0 ? std::string("no finding") : plural(static_cast<long long>(failed), "finding"));
}

void print_json(const std::vector<SeedResult>& results, const FaultsOptions& options) {
  Json out{{"steps", options.steps},
           {"complete", results.size() == options.seeds},
           {"findings", 0},
           {"seeds", Json::array()}};
  int findings = 0;
  for (const SeedResult& r : results) {
    Json j = Json::parse(to_json(r));
    if (r.finding) {
      ++findings;
      j["reproduce"] = reproduce(r.seed, options);
      if (options.shrink) j["shrunk"] = shrunk_json(shrink_seed(r, options));
    }
    out["seeds"].push_back(std::move(j));
  }
  out["findings"] = findings;
  fmt::print("{}\n", out.dump(2));
}

}  // namespace

int run_faults(FaultsOptions options) {
  const std::vector<SeedResult> results = [&] {
    const Interrupt interrupt;  // the shrinking that may follow is left at once
    return run_seeds(options, interrupt);
  }();
  const bool complete = results.size() == options.seeds;
  if (!complete) {
    fmt::print(stderr, "interrupted: {} of {} seeds were played\n", results.size(), options.seeds);
    options.shrink = false;  // whoever lost patience does not wait for minutes more
  }
  if (options.json)
    print_json(results, options);
  else
    print_table(results, options);
  if (std::any_of(results.begin(), results.end(),
                  [](const SeedResult& r) { return r.finding.has_value(); }))
    return 1;
  return complete ? 0 : Interrupt::kExitCode;
}

void add_faults(CLI::App& sim, int& exit_code) {
  auto options = std::make_shared<FaultsOptions>();
  CLI::App* command =
      sim.add_subcommand("faults", "Random load and failures from seeds, watched by checkers");
  command->add_option("--seed", options->seed, "The first seed")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), "NONNEGATIVE"))
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "How many seeds, one after another")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Actions of each seed")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command->add_option("--jobs", options->jobs, "Seeds at a time; 0: one for each processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--shrink", options->shrink, "Make a failing seed as small as it can be");
  command->add_option("--shrink-time", options->shrink_s, "Seconds to shrink a seed at most")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->callback([options, &exit_code] { exit_code = run_faults(*options); });
}

}  // namespace gs
