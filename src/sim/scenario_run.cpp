#include "sim/scenario_run.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/colour.hpp"
#include "sim/describe.hpp"

namespace gs::scenario {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void tell_story(RunRow& row, const LogEntry& entry) {
  const std::string when = fmt::format("{:>8}", describe(entry.now));
  if (entry.command) row.story.push_back(when + "  > " + describe(*entry.command));
  if (entry.error) row.story.push_back(when + "      refused: " + entry.error->message);
  for (const Effect& effect : entry.effects)
    row.story.push_back(when + "      " + describe(effect));
}

int count(const std::vector<RunRow>& rows, bool passed) {
  return static_cast<int>(std::count_if(
      rows.begin(), rows.end(), [&](const RunRow& row) { return row.outcome.passed() == passed; }));
}

void print_failure(const RunRow& row, const Failure& failure, bool colour) {
  fmt::print("        {}\n",
             paint(fmt::format("{}:{}:", row.file, failure.line), Paint::Bold, colour));
  fmt::print("          expected  {}\n", failure.expected);
  std::istringstream actual(failure.actual);
  std::string line;
  for (bool first = true; std::getline(actual, line); first = false)
    fmt::print("          {:<8}  {}\n", first ? "actual" : "", line);
  if (!failure.why.empty()) fmt::print("          why       {}\n", failure.why);
}

void print_table(const std::vector<RunRow>& rows, bool colour) {
  std::string file;
  for (const RunRow& row : rows) {
    if (row.file != file) fmt::print("{}\n", paint(row.file, Paint::Bold, colour));
    file = row.file;
    const bool good = row.outcome.passed();
    fmt::print("  {}  {:<70}  {}\n",
               good ? paint("ok  ", Paint::Green, colour) : paint("FAIL", Paint::Red, colour),
               row.title.empty() ? "the whole file" : row.title,
               paint(plural(row.outcome.expectations, "check"), Paint::Dim, colour));
    for (const std::string& line : row.story) fmt::print("{}\n", paint(line, Paint::Dim, colour));
    for (const Failure& failure : row.outcome.failures) print_failure(row, failure, colour);
  }
  fmt::print("{} passed, {} failed\n", count(rows, true), count(rows, false));
}

void print_json(const std::vector<RunRow>& rows) {
  Json out{{"passed", count(rows, true)}, {"failed", count(rows, false)}, {"cases", Json::array()}};
  for (const RunRow& row : rows) {
    Json c{{"file", row.file},
           {"case", row.title},
           {"line", row.line},
           {"outcome", row.outcome.passed() ? "passed" : "failed"},
           {"checks", row.outcome.expectations},
           {"failures", Json::array()}};
    for (const Failure& f : row.outcome.failures)
      c["failures"].push_back(
          {{"line", f.line}, {"expected", f.expected}, {"actual", f.actual}, {"why", f.why}});
    if (!row.story.empty()) c["story"] = row.story;
    out["cases"].push_back(std::move(c));
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_csv(const std::vector<RunRow>& rows) {
  fmt::print("file,case,outcome,checks,first_failure_line,expected,actual\n");
  for (const RunRow& row : rows) {
    const bool good = row.outcome.passed();
    const Failure first = good ? Failure{} : row.outcome.failures.front();
    fmt::print("{},{},{},{},{},{},{}\n", csv_field(row.file), csv_field(row.title),
               good ? "passed" : "failed", row.outcome.expectations,
               good ? "" : std::to_string(first.line), csv_field(first.expected),
               csv_field(first.actual));
  }
}

}  // namespace

Result<std::vector<std::string>> find_scenarios(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
         it.increment(error))
      if (it->path().extension() == ".scn") inside.push_back(it->path().generic_string());
    if (error) return not_found(path + ": " + error.message());
    if (inside.empty()) return not_found(path + ": no *.scn below it");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Result<std::vector<RunRow>> run_scenarios(const RunOptions& options) {
  const auto files = find_scenarios(options.paths);
  if (!files) return files.error();
  std::vector<Scenario> scenarios;
  for (const std::string& file : *files) {
    auto scenario = load_scenario(file);
    if (!scenario) return scenario.error();
    scenarios.push_back(std::move(*scenario));
  }
  std::vector<RunRow> rows;
  for (const Scenario& scenario : scenarios)
    for (const ScenarioCase& c : scenario.cases) {
      if (c.title.find(options.only) == std::string::npos) continue;
      RunRow row{scenario.file, c.title, c.line, {}, {}};
      World::Observer observe;
      if (options.verbose)
        observe = [&row](World&, const LogEntry& entry) { tell_story(row, entry); };
      row.outcome = play_case(c, observe);
      rows.push_back(std::move(row));
    }
  if (rows.empty()) return not_found("no case \"" + options.only + "\"");
  return rows;
}

int run_and_print(const RunOptions& options) {
  const Result<std::vector<RunRow>> rows = run_scenarios(options);
  if (!rows) {
    fmt::print(stderr, "{}\n", rows.error().message);
    return 2;
  }
  if (options.json)
    print_json(*rows);
  else if (options.csv)
    print_csv(*rows);
  else
    print_table(*rows, wants_colour());
  return count(*rows, false) == 0 ? 0 : 1;
}

void add_run(CLI::App& sim, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = sim.add_subcommand("run", "Play scenario files and check what they expect");
  command->add_option("paths", options->paths, "*.scn files, or folders of them")->required();
  command->add_option("--case", options->only, "Only the cases whose title contains this");
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->add_flag("--csv", options->csv, "The table as CSV");
  command->add_flag("-v,--verbose", options->verbose, "Tell what happens, step by step");
  command->callback([options, &exit_code] { exit_code = run_and_print(*options); });
}

}  // namespace gs::scenario
