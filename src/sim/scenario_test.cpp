#include "sim/scenario.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/scenario_run.hpp"

namespace gs::scenario {
namespace {

std::string error_of(const std::string& text) {
  const auto scenario = read_scenario("f.scn", text);
  return scenario.ok() ? "" : scenario.error().message;
}

// Plays the only case.
CaseOutcome play(const std::string& text) {
  const auto scenario = read_scenario("f.scn", text);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.error().message);
  return scenario.ok() ? play_case(scenario->cases.front()) : CaseOutcome{};
}

const char* const kCluster = "node n1 gpus=4\ntenant a\n";

TEST(ScenarioText, names_the_line_and_the_nearest_word) {
  EXPECT_EQ(error_of("# x\nnode n1 gpuz=4\n"),
            "f.scn:2: unknown key 'gpuz' (did you mean 'gpus'?)");
  EXPECT_EQ(error_of("nodee n1\n"), "f.scn:1: unknown line 'nodee' (did you mean 'node'?)");
  EXPECT_EQ(error_of("node n1 gpus=many\n"), "f.scn:1: gpus: 'many' is not a whole number");
  EXPECT_EQ(error_of("at soon\n"), "f.scn:1: 'soon' is not a time such as 90s, 10m or 1h30m");
  EXPECT_NE(error_of("expect j1 waiting because capasity\n").find("did you mean 'capacity'?"),
            std::string::npos);
  EXPECT_EQ(error_of("  gpu 0\n"), "f.scn:1: an indented line belongs to a line before it");
  EXPECT_EQ(error_of("submit j1 \"x\n"), "f.scn:1: a quote is not closed");
}

TEST(ScenarioText, ranges_repeat_a_line_with_what_is_indented_under_it) {
  const auto blocks = read_blocks("node a[1..2]b[1..2] domain=s{1}/l{2}\n  gpu 0\n");
  ASSERT_TRUE(blocks.ok());
  ASSERT_EQ(blocks->size(), 4U);
  EXPECT_EQ((*blocks)[2].head.words[1].value, "a2b1");
  EXPECT_EQ((*blocks)[2].head.words[2].value, "s2/l1");
  EXPECT_EQ((*blocks)[3].body.size(), 1U);
}

TEST(ScenarioText, values) {
  std::string problem;
  EXPECT_EQ(Value("1h30m", problem).duration().ms, 5'400'000);
  EXPECT_EQ(Value("500ms", problem).duration().ms, 500);
  EXPECT_EQ(Value("80GiB", problem).mib(), 81'920);
  EXPECT_EQ(Value("0.25", problem).milli(), 250);
  EXPECT_EQ(Value("250m", problem).milli(), 250);
  EXPECT_EQ(Value("0-2,5", problem).numbers(), (std::vector<int>{0, 1, 2, 5}));
  EXPECT_EQ(problem, "");
  Value("3 apples", problem).number();
  EXPECT_NE(problem, "");
}

TEST(Scenario, a_second_line_about_a_node_changes_only_what_it_names) {
  const auto scenario =
      read_scenario("f.scn", "node n1 gpus=2 labels=zone:a\nnode n1 ready=no\ncase x\n");
  ASSERT_TRUE(scenario.ok());
  const auto& last = std::get<PutNode>(std::get<Command>(scenario->cases[0].steps[1].what)).node;
  EXPECT_EQ(last.gpus.size(), 2U);
  EXPECT_EQ(last.labels.size(), 1U);
  EXPECT_FALSE(last.ready);
}

TEST(Scenario, cases_begin_alike_and_do_not_see_each_other) {
  const auto scenario = read_scenario("f.scn", std::string(kCluster) +
                                                   "case one\nsubmit j tenant=a gpus=4\n"
                                                   "expect j running\n"
                                                   "case two\nsubmit k tenant=a gpus=4\n"
                                                   "expect k running\n");
  ASSERT_TRUE(scenario.ok());
  ASSERT_EQ(scenario->cases.size(), 2U);
  for (const auto& c : scenario->cases) EXPECT_TRUE(play_case(c).passed());
}

TEST(Scenario, a_failed_expectation_tells_what_is_the_case_and_why) {
  const CaseOutcome outcome = play(std::string(kCluster) +
                                   "submit big tenant=a gpus=3\nsettle\n"
                                   "submit j tenant=a gpus=2\nexpect j running\n");
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_EQ(outcome.failures[0].line, 6);
  EXPECT_EQ(outcome.failures[0].expected, "expect j running");
  EXPECT_EQ(outcome.failures[0].actual, "j is waiting");
  EXPECT_NE(outcome.failures[0].why.find("[capacity]"), std::string::npos);
}

TEST(Scenario, a_refusal_that_nobody_expects_is_a_failure) {
  const CaseOutcome outcome = play(std::string(kCluster) + "submit j tenant=b gpus=1\n");
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_EQ(outcome.failures[0].line, 3);
  EXPECT_TRUE(play(std::string(kCluster) +
                   "submit j tenant=b gpus=1\nexpect refused j \"does not exist\"\n")
                  .passed());
}

TEST(Scenario, every_clause_can_fail) {
  const std::string begin = std::string(kCluster) + "submit j tenant=a gpus=2\n";
  for (const char* clause :
       {"waiting", "not running", "on n2", "on n1:2-3", "not on n1", "with 2 tasks", "in 2 node",
        "starts at 1h", "started at 1h", "ended at 1h", "evicted", "score total>100",
        "because capacity", "never", "packs of 1 in nowhere", "before j", "filters taint=1",
        "best n1 has=0", "quota a gpu_milli"}) {
    const CaseOutcome outcome = play(begin + "expect j " + clause + "\n");
    EXPECT_EQ(outcome.failures.size(), 1U) << clause;
  }
  for (const char* line : {"expect refused j", "expect error", "expect dry-run starts",
                           "expect tenant a gpus=3", "expect node n1 free=4"})
    EXPECT_EQ(play(begin + line + "\n").failures.size(), 1U) << line;
}

TEST(Scenario, files_that_cannot_be_read_are_bad_input) {
  RunOptions options;
  options.paths = {"no/such/file.scn"};
  EXPECT_FALSE(run_scenarios(options).ok());
}

// The manual names every key that there is.
TEST(Scenario, the_manual_is_complete) {
  std::ifstream in("docs/scenarios.md");
  std::ostringstream text;
  text << in.rdbuf();
  ASSERT_FALSE(text.str().empty()) << "run from the project's root";
  for (const std::string& entry : scenario_keys()) {
    const std::string key = entry.substr(entry.find(' ') + 1);
    const std::string manual = text.str();
    const bool there = manual.find("`" + key + "`") != std::string::npos ||
                       manual.find("`" + key + "=") != std::string::npos ||
                       manual.find(" " + key + "=") != std::string::npos ||
                       manual.find(key + "\\|") != std::string::npos ||
                       manual.find("\\|" + key) != std::string::npos;
    EXPECT_TRUE(there) << entry;
  }
}

}  // namespace
}  // namespace gs::scenario
