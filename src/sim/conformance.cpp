#include "sim/conformance.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "sim/conformance_skips.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

struct Suite {
  const char* name;
  CaseResult (*run)(const Json& c, bool show);
};
constexpr Suite kSuites[] = {
    {"kueue-tas", run_kueue_case},
    {"kai", run_kai_case},
};

struct Row {
  std::string file, suite, id, compare;
  const char* outcome;  // "passed", "failed", "skipped"
  CaseResult result;
};

Result<Json> load(const std::string& file) {
  std::ifstream in(file);
  if (!in) return not_found(fmt::format("{}: can't read the file", file));
  try {
    return Json::parse(in);
  } catch (const Json::exception& e) {
    return invalid(fmt::format("{}: not JSON: {}", file, e.what()));
  }
}

Result<const Suite*> suite_of(const std::string& file, const Json& document) {
  if (!document.is_object() || !document.contains("suite") || !document["suite"].is_string())
    return invalid(fmt::format("{}: no \"suite\" in it", file));
  if (!document.contains("cases") || !document["cases"].is_array())
    return invalid(fmt::format("{}: no list \"cases\" in it", file));
  const std::string name = document["suite"];
  for (const Suite& suite : kSuites)
    if (name == suite.name) return &suite;
  return invalid(fmt::format("{}: unknown suite \"{}\"", file, name));
}

const ConformanceSkip* find_skip(const std::string& id) {
  for (const ConformanceSkip& skip : conformance_skips())
    if (skip.id == id) return &skip;
  return nullptr;
}

// One suite has it with the expectation, the other with the case.
std::string compare_of(const Json& c) {
  return c.contains("compare") ? c.at("compare") : c.at("expect").at("compare");
}

Result<Row> run_case(const std::string& file, const Suite& suite, const Json& c,
                     const ConformanceOptions& options) {
  std::string id = "?";
  try {
    id = c.at("id").get<std::string>();
    Row row{file, suite.name, id, compare_of(c), "passed", {}};
    row.result = suite.run(c, !options.only.empty());
    if (row.result.passed) return row;
    const ConformanceSkip* skip = options.strict ? nullptr : find_skip(id);
    row.outcome = skip != nullptr ? "skipped" : "failed";
    if (skip != nullptr) row.result.why += fmt::format(" (on purpose: {})", skip->reason);
    return row;
  } catch (const std::exception& e) {
    return invalid(fmt::format("{}: case {}: {}", file, id, e.what()));
  }
}

// "Which case" may be given in full or by any part that names it.
bool wanted(const Json& c, const std::string& only) {
  if (only.empty()) return true;
  return c.is_object() && c.contains("id") && c["id"].is_string() &&
         c["id"].get<std::string>().find(only) != std::string::npos;
}

Result<std::vector<Row>> run_files(const ConformanceOptions& options) {
  std::vector<Row> rows;
  for (const std::string& file : options.files) {
    const Result<Json> document = load(file);
    if (!document) return document.error();
    const Result<const Suite*> suite = suite_of(file, *document);
    if (!suite) return suite.error();
    for (const Json& c : (*document)["cases"]) {
      if (!wanted(c, options.only)) continue;
      Result<Row> row = run_case(file, **suite, c, options);
      if (!row) return row.error();
      rows.push_back(std::move(*row));
    }
  }
  if (!options.only.empty()) {
    const auto exact = [&](const Row& row) { return row.id == options.only; };
    if (std::any_of(rows.begin(), rows.end(), exact)) std::erase_if(rows, std::not_fn(exact));
    if (rows.empty()) return not_found(fmt::format("no case \"{}\"", options.only));
  }
  return rows;
}

int count(const std::vector<Row>& rows, std::string_view outcome) {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(),
                                        [&](const Row& row) { return row.outcome == outcome; }));
}

void print_json(const std::vector<Row>& rows) {
  Json out{{"passed", count(rows, "passed")},
           {"failed", count(rows, "failed")},
           {"skipped", count(rows, "skipped")},
           {"cases", Json::array()}};
  for (const Row& row : rows) {
    Json c{{"file", row.file},       {"suite", row.suite},     {"id", row.id},
           {"compare", row.compare}, {"outcome", row.outcome}, {"why", row.result.why}};
    for (const auto& section : row.result.sections) c[section.title] = section.lines;
    out["cases"].push_back(std::move(c));
  }
  fmt::print("{}\n", out.dump(2));
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_csv(const std::vector<Row>& rows) {
  fmt::print("suite,id,compare,outcome,why\n");
  for (const Row& row : rows)
    fmt::print("{},{},{},{},{}\n", row.suite, csv_field(row.id), row.compare, row.outcome,
               csv_field(row.result.why));
}

void print_table(const std::vector<Row>& rows) {
  std::size_t width = 4;
  for (const Row& row : rows) width = std::max(width, row.id.size());
  for (const Row& row : rows) {
    fmt::print("{:<7}  {:<15}  {:<{}}  {}\n", row.outcome, row.compare, row.id, width,
               row.result.why);
    for (const auto& section : row.result.sections) {
      fmt::print("  {}\n", section.title);
      for (const std::string& line : section.lines) fmt::print("    {}\n", line);
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", count(rows, "passed"), count(rows, "failed"),
             count(rows, "skipped"));
}

}  // namespace

int run_conformance(const ConformanceOptions& options) {
  const Result<std::vector<Row>> rows = run_files(options);
  if (!rows) {
    fmt::print(stderr, "conformance: {}\n", rows.error().message);
    return 2;
  }
  if (options.json)
    print_json(*rows);
  else if (options.csv)
    print_csv(*rows);
  else
    print_table(*rows);
  return count(*rows, "failed") == 0 ? 0 : 1;
}

void add_conformance(CLI::App& sim, int& exit_code) {
  auto options = std::make_shared<ConformanceOptions>();
  CLI::App* command =
      sim.add_subcommand("conformance", "Run other schedulers' test cases through the engine");
  command->add_option("files", options->files, "Files of cases")->required();
  command->add_flag("--strict", options->strict,
                    "Count the cases of docs/conformance.md as failed too");
  command->add_option("--case", options->only, "Show one case: cluster, expected, ours, why");
  command->add_flag("--json", options->json, "One JSON document on stdout");
  command->add_flag("--csv", options->csv, "The table as CSV");
  command->callback([options, &exit_code] { exit_code = run_conformance(*options); });
}

}  // namespace gs
