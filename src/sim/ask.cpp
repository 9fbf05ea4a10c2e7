#include "sim/ask.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/describe.hpp"
#include "sim/scenario.hpp"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;
using scenario::Play;

int bad_input(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  return 2;
}

Json why_json(const Why& why) {
  Json out{{"constraint", to_string(why.constraint)}, {"sentence", why.sentence}};
  static constexpr const char* kVerdicts[] = {"not-now", "never", "broken"};
  out["verdict"] = kVerdicts[static_cast<int>(why.verdict)];
  for (const FilterCount& f : why.filters) out["filters"][to_string(f.filter)] = f.nodes;
  if (why.best)
    out["best"] = {{"where", why.best->node},
                   {"has", why.best->has},
                   {"needs", why.best->needs},
                   {"of", why.best->of}};
  if (why.quota)
    out["quota"] = {{"tenant", why.quota->tenant},
                    {"resource", why.quota->resource},
                    {"requested", why.quota->requested},
                    {"limit", why.quota->limit},
                    {"current", why.quota->current}};
  return out;
}

Json places_json(const std::vector<TaskPlace>& places) {
  Json out = Json::array();
  for (const TaskPlace& place : places)
    out.push_back({{"task", describe(place.task)}, {"place", describe(place)}});
  return out;
}

// What is known about a job at the end of a case.
Json explain(Play& play, const std::string& title, const std::string& job) {
  const auto& history = play.jobs().at(job);
  Json out{{"case", title}, {"job", job}, {"state", history.state}};
  std::optional<Why> why = history.why;
  if (const auto e = play.world().engine().explain(job, play.world().now()); e) {
    why = e->why;
    out["places"] = places_json(e->places);
    if (!e->scores.empty()) {
      const ScoreCard& s = e->scores.front();
      out["score"] = {{"resources", s.resource_availability},
                      {"topology", s.topology_alignment},
                      {"domain", s.domain_utilization},
                      {"history", s.historical_performance},
                      {"affinity", s.affinity},
                      {"total", s.total}};
    }
    if (e->expected_start) out["expected_start"] = describe(*e->expected_start);
  }
  if (play.refusal() && play.refusal()->job == job && history.state == "refused") {
    why = play.refusal()->why;
    out["refused"] = play.refusal()->error.message;
  }
  if (why) out["why"] = why_json(*why);
  return out;
}

void print_explanation(const Json& e) {
  if (!e["case"].get<std::string>().empty()) fmt::print("{}\n", e["case"].get<std::string>());
  fmt::print("  {} is {}\n", e["job"].get<std::string>(), e["state"].get<std::string>());
  for (const auto& place : e.value("places", Json::array()))
    fmt::print("    {} on {}\n", place["task"].get<std::string>(),
               place["place"].get<std::string>());
  if (e.contains("refused")) fmt::print("    {}\n", e["refused"].get<std::string>());
  if (e.contains("why")) {
    const Json& why = e["why"];
    fmt::print("    {} [{}]: {}\n", why["verdict"].get<std::string>(),
               why["constraint"].get<std::string>(), why["sentence"].get<std::string>());
    const Json filters = why.value("filters", Json::object());
    for (const auto& [filter, nodes] : filters.items())
      fmt::print("      {}: {}\n", filter, plural(nodes.get<int>(), "node"));
  }
  if (e.contains("score")) fmt::print("    score {:.3f}\n", e["score"]["total"].get<double>());
  if (e.contains("expected_start"))
    fmt::print("    expected start: {}\n", e["expected_start"].get<std::string>());
}

void play_to_end(Play& play, const scenario::ScenarioCase& c) {
  for (const scenario::Step& step : c.steps)
    if (!std::holds_alternative<scenario::Expect>(step.what)) play.step(step);
  play.world().settle();
}

Json dry_run_json(const Job& job, const DryRun& answer) {
  Json out{{"job", job.id},
           {"starts_now", answer.starts_now},
           {"places", places_json(answer.places)},
           {"evicts", Json::array()}};
  for (const TaskRef& task : answer.evicts) out["evicts"].push_back(describe(task));
  if (answer.why) out["why"] = why_json(*answer.why);
  if (answer.expected_start) out["expected_start"] = describe(*answer.expected_start);
  return out;
}

void print_dry_run(const Json& d) {
  const std::string job = d["job"].get<std::string>();
  const bool room = d["starts_now"].get<bool>();
  if (room && d["evicts"].empty())
    fmt::print("{} would start now\n", job);
  else if (!d["evicts"].empty())
    fmt::print("{} would start, evicting {}\n", job, d["evicts"].dump());
  else
    fmt::print("{} would not start now\n", job);
  for (const auto& place : d["places"])
    fmt::print("  {} on {}\n", place["task"].get<std::string>(), place["place"].get<std::string>());
  if (d.contains("why"))
    fmt::print("  [{}] {}\n", d["why"]["constraint"].get<std::string>(),
               d["why"]["sentence"].get<std::string>());
  if (d.contains("expected_start"))
    fmt::print("  expected start: {}\n", d["expected_start"].get<std::string>());
}

}  // namespace

int explain_in_scenario(const std::string& file, const std::string& job, bool json) {
  const auto scenario = scenario::load_scenario(file);
  if (!scenario) return bad_input(scenario.error().message);
  Json all = Json::array();
  for (const auto& c : scenario->cases) {
    Play play;
    play_to_end(play, c);
    if (play.jobs().count(job) > 0) all.push_back(explain(play, c.title, job));
  }
  if (all.empty()) return bad_input(fmt::format("{}: there is no job {}", file, job));
  if (json)
    fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
  else
    for (const Json& e : all) print_explanation(e);
  return 0;
}

int dry_run_in_scenario(const std::string& file, const std::vector<std::string>& keys, bool json) {
  const auto scenario = scenario::load_scenario(file);
  if (!scenario) return bad_input(scenario.error().message);
  std::string plain = "dry-run job";
  for (const std::string& key : keys) {
    const auto equals = key.find('=');
    plain += equals == std::string::npos
                 ? " " + key
                 : fmt::format(" {}=\"{}\"", key.substr(0, equals), key.substr(equals + 1));
  }
  const auto question = scenario::read_scenario("the job", plain);
  if (!question) return bad_input(question.error().message);
  Json all = Json::array();
  for (const auto& c : scenario->cases) {
    Play play;
    play_to_end(play, c);
    if (!keys.empty())
      for (const auto& step : question->cases.front().steps) play.step(step);
    if (!keys.empty() && play.dry_runs().empty() && play.refusal())
      return bad_input(play.refusal()->error.message);
    for (const auto& [job, answer] : play.dry_runs())
      if (keys.empty() || &answer == &play.dry_runs().back().second)
        all.push_back(dry_run_json(job, answer));
    if (!keys.empty()) break;  // the first case is the cluster that is asked
  }
  if (all.empty()) return bad_input(file + ": no dry run in it; give keys such as tenant=a gpus=4");
  if (json)
    fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
  else
    for (const Json& d : all) print_dry_run(d);
  return 0;
}

void add_why(CLI::App& app, int& exit_code) {
  struct Options {
    std::string file, job;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("why", "Why a job of a scenario waits, or where it runs");
  command->add_option("file", options->file, "A *.scn file")->required();
  command->add_option("job", options->job, "The job's id")->required();
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->callback([options, &exit_code] {
    exit_code = explain_in_scenario(options->file, options->job, options->json);
  });
}

void add_dry_run(CLI::App& app, int& exit_code) {
  struct Options {
    std::string file;
    std::vector<std::string> keys;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("dry-run", "Would a job start in a scenario's cluster?");
  command->add_option("file", options->file, "A *.scn file")->required();
  command->add_option("keys", options->keys,
                      "The job as on a submit line, such as tenant=a gpus=4; without: the dry runs "
                      "that the file asks for");
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->callback([options, &exit_code] {
    exit_code = dry_run_in_scenario(options->file, options->keys, options->json);
  });
}

}  // namespace gs
