#include "sim/conformance.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/conformance_skips.hpp"
#include "sim/kueue_case.hpp"
#include "sim/kueue_grade.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

Json host(const std::string& rack, const std::string& name, int cpu_milli) {
  return {{"name", name},
          {"domain", {{"rack", rack}, {"host", name}}},
          {"capacity", {{"cpu_milli", cpu_milli}, {"pods", 10}}},
          {"ready", true},
          {"taints", Json::array()},
          {"labels", Json::object()}};
}

Json part(const std::string& rack, const std::string& name, int count) {
  return {{"domain", {rack, name}}, {"count", count}};
}

// Three pods that must share a rack; rack b is the tighter one that holds them.
Json sample() {
  return {{"id", "own/tight-rack"},
          {"levels", {"rack", "host"}},
          {"nodes", {host("a", "a1", 4000), host("b", "b1", 2000), host("b", "b2", 1000)}},
          {"used", Json::array()},
          {"groups",
           {{{"name", "main"},
             {"count", 3},
             {"request", {{"cpu_milli", 1000}}},
             {"topology", {{"mode", "required"}, {"level", "rack"}}}}}},
          {"expect",
           {{"feasible", true},
            {"groups", {{"main", {part("b", "b1", 2), part("b", "b2", 1)}}}},
            {"compare", "exact"}}}};
}

TEST(ConformanceKueue, PassesOnTheLayoutOfTheRule) {
  const CaseResult result = run_kueue_case(sample(), true);
  EXPECT_TRUE(result.passed) << result.why;
  EXPECT_EQ(result.why, "the same layout");
  ASSERT_EQ(result.sections.size(), 4U);
  EXPECT_EQ(result.sections[3].lines.at(0), "main: b/b1 x2, b/b2 x1");
}

TEST(ConformanceKueue, FailsOnAnyOther) {
  Json wrong = sample();
  wrong["expect"]["groups"] = {{"main", {part("a", "a1", 3)}}};
  EXPECT_FALSE(run_kueue_case(wrong, false).passed);
  wrong["expect"]["compare"] = "feasibility";
  EXPECT_TRUE(run_kueue_case(wrong, false).passed);
  wrong["expect"] = {{"feasible", false}, {"groups", Json::object()}, {"compare", "feasibility"}};
  EXPECT_FALSE(run_kueue_case(wrong, false).passed);
}

TEST(ConformanceKueue, RequestsThatDoNotFitSayWhy) {
  Json big = sample();
  big["groups"][0]["count"] = 5;
  big["expect"] = {{"feasible", false}, {"groups", Json::object()}, {"compare", "feasibility"}};
  const CaseResult result = run_kueue_case(big, false);
  EXPECT_TRUE(result.passed);
  EXPECT_NE(result.why.find("rack"), std::string::npos) << result.why;
}

TEST(ConformanceKueue, UsedAndPreviousTakeRoom) {
  Json used = sample();
  used["used"] = {{{"node", "b2"},
                   {"resources", {{"cpu_milli", 1000}, {"pods", 1}}},
                   {"phase", "running"},
                   {"kind", "foreign-pod"}}};
  used["expect"]["groups"] = {{"main", {part("a", "a1", 3)}}};
  EXPECT_TRUE(run_kueue_case(used, false).passed);
  used["used"][0]["phase"] = "succeeded";
  EXPECT_FALSE(run_kueue_case(used, false).passed);
}

TEST(ConformanceKueue, OnlyTheTasksOfAFailedNodeMove) {
  Json failed = sample();
  failed["nodes"].push_back(host("b", "b3", 3000));
  failed["groups"][0]["previous"] = {part("b", "b1", 2), part("b", "b2", 1)};
  failed["failed_node"] = "b1";
  failed["expect"]["groups"] = {{"main", {part("b", "b2", 1), part("b", "b3", 2)}}};
  EXPECT_TRUE(run_kueue_case(failed, false).passed);
}

TEST(ConformanceKueue, AnIllegalLayoutIsNamed) {
  const KueueCase c = read_kueue_case(sample());
  EXPECT_EQ(illegal(c, {{"main", {{{"b", "b1"}, 2}, {{"b", "b2"}, 1}}}}), "");
  EXPECT_EQ(illegal(c, {{"main", {{{"b", "b1"}, 2}}}}), "main has 2 of 3 tasks");
  EXPECT_EQ(illegal(c, {{"main", {{{"a", "a1"}, 2}, {{"b", "b1"}, 1}}}}),
            "main lies in several domains of rack");
  EXPECT_EQ(illegal(c, {{"main", {{{"b", "b2"}, 2}, {{"b", "b1"}, 1}}}}),
            "cpu_milli of b2: 2000 used, 1000 there");
  EXPECT_EQ(illegal(c, {}), "main is missing");
}

TEST(ConformanceKueue, MirrorImagesHaveEqualRoomAndLabels) {
  Json twins = sample();
  twins["nodes"] = {host("a", "a1", 2000), host("a", "a2", 1000), host("b", "b1", 1000),
                    host("b", "b2", 2000)};
  const TaskLayout first = {{"main", {{{"a", "a1"}, 2}, {{"a", "a2"}, 1}}}};
  const TaskLayout second = {{"main", {{{"b", "b2"}, 2}, {{"b", "b1"}, 1}}}};
  const TaskLayout third = {{"main", {{{"b", "b2"}, 1}, {{"b", "b1"}, 1}, {{"a", "a1"}, 1}}}};
  EXPECT_TRUE(mirror_images(read_kueue_case(twins), first, second));
  EXPECT_FALSE(mirror_images(read_kueue_case(twins), first, third));
  twins["nodes"][0]["labels"] = {{"zone", "x"}};
  EXPECT_TRUE(mirror_images(read_kueue_case(twins), first, second)) << "nobody asks for the label";
  twins["groups"][0]["node_selector"] = {{"zone", "x"}};
  EXPECT_FALSE(mirror_images(read_kueue_case(twins), first, second));
}

// ---------------------------------------------------------------- cases that can't be run

// One job of one GPU runs on the only node.
Json kai_sample() {
  return Json::parse(R"({"id": "own/kai",
    "nodes": [{"name": "n", "gpus": 2, "gpu_memory_mb": 100, "cpu_milli": 1000,
               "memory_bytes": 1000, "pods": 10, "labels": {}}],
    "queues": [{"name": "q", "parent": null, "deserved_gpus": 1, "limit_gpus": null,
                "over_quota_weight": 1, "priority": 100, "created_order": 0}],
    "jobs": [{"name": "j", "queue": "q", "priority": 50, "preemptible": true, "gang_min": 1,
              "tasks": [{"name": "j-0", "gpus": 1, "cpu_milli": 10, "memory_bytes": 10,
                         "state": "running", "node": "n"}]}],
    "actions": ["allocate"], "rounds": 1, "stable_rounds": 0, "compare": "exact",
    "expect": {"jobs": {"j": {"state": "running", "node": "n"}}}})");
}

TEST(ConformanceKai, ACaseThatMakesNoSenseIsRefused) {
  EXPECT_TRUE(run_kai_case(kai_sample(), false).passed);
  const std::pair<const char*, Json> changes[] = {
      {"/jobs/0/queue", "nobody"},
      {"/queues/0/parent", "nobody"},
      {"/jobs/0/tasks/0/node", "nowhere"},
      {"/jobs/0/tasks/0/state", "asleep"},
      {"/jobs/0/age_minutes", 9'000'000'000'000'000'000},
      {"/nodes/0/gpus", 1'000'000'000},
      {"/nodes/0/mig", {{"1g.5gb", 1'000'000'000}}},
      {"/nodes/0/cpu_milli", 9'000'000'000'000'000'000},
      {"/actions/0", "sleep"},
      {"/rounds", 1'000'000'000},
      {"/rounds", 1e86},
      {"/expect/jobs/j/node", "nowhere"},
  };
  for (const auto& [what, value] : changes) {
    Json broken = kai_sample();
    broken[Json::json_pointer(what)] = value;
    EXPECT_THROW(run_kai_case(broken, false), std::runtime_error) << what;
  }
}

TEST(ConformanceKai, ASharedGpuMustBeThere) {
  Json crowded = kai_sample();
  crowded["nodes"][0]["gpus"] = 0;
  Json& task = crowded["jobs"][0]["tasks"][0];
  task.erase("gpus");
  task["gpu_fraction"] = 0.5;
  task["gpu_group"] = "g";
  EXPECT_THROW(run_kai_case(crowded, false), std::runtime_error);
  crowded["nodes"][0]["gpus"] = 1;
  EXPECT_TRUE(run_kai_case(crowded, false).passed);
  for (const char* name : {"j-1", "j-2"}) {
    Json more = crowded["jobs"][0]["tasks"][0];
    more["name"] = name;
    crowded["jobs"][0]["tasks"].push_back(more);
  }
  EXPECT_THROW(run_kai_case(crowded, false), std::runtime_error) << "three halves of one GPU";
}

TEST(ConformanceKueue, ACaseThatMakesNoSenseIsRefused) {
  Json broken = sample();
  broken["levels"] = Json::array();
  EXPECT_THROW(run_kueue_case(broken, false), std::runtime_error);
  broken = sample();
  broken["nodes"][0]["capacity"]["cpu_milli"] = -1;
  EXPECT_THROW(run_kueue_case(broken, false), std::runtime_error);
}

// ---------------------------------------------------------------- the command

class ConformanceCommand : public ::testing::Test {
 protected:
  int run(const std::string& content, ConformanceOptions options = {}) {
    const std::string file = ::testing::TempDir() + "/conformance_test.json";
    std::ofstream(file) << content;
    options.files = {file};
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = run_conformance(options);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }
  static std::string suite(const Json& cases) {
    return Json{{"suite", "kueue-tas"}, {"origin", Json::object()}, {"cases", cases}}.dump();
  }
  std::string out_, err_;
};

TEST_F(ConformanceCommand, CountsAndExitCode) {
  Json wrong = sample();
  wrong["id"] = "own/wrong";
  wrong["expect"]["groups"] = {{"main", {part("a", "a1", 3)}}};
  EXPECT_EQ(run(suite(Json::array({sample()}))), 0);
  EXPECT_TRUE(out_.ends_with("1 passed, 0 failed, 0 skipped\n")) << out_;
  EXPECT_EQ(run(suite(Json::array({sample(), wrong}))), 1);
  EXPECT_TRUE(out_.ends_with("1 passed, 1 failed, 0 skipped\n")) << out_;
  ConformanceOptions one;
  one.only = "own/wrong";
  EXPECT_EQ(run(suite(Json::array({sample(), wrong})), one), 1);
  EXPECT_NE(out_.find("ours\n    main: b/b1 x2, b/b2 x1"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("own/tight-rack"), std::string::npos);
}

TEST_F(ConformanceCommand, OtherForms) {
  ConformanceOptions json;
  json.json = true;
  EXPECT_EQ(run(suite(Json::array({sample()})), json), 0);
  const Json out = Json::parse(out_);
  EXPECT_EQ(out.at("passed"), 1);
  EXPECT_EQ(out.at("cases").at(0).at("outcome"), "passed");
  ConformanceOptions csv;
  csv.csv = true;
  EXPECT_EQ(run(suite(Json::array({sample()})), csv), 0);
  EXPECT_TRUE(
      out_.starts_with("suite,id,compare,outcome,why\nkueue-tas,own/tight-rack,exact,passed"));
}

TEST_F(ConformanceCommand, BadInputIsExitCode2AndSaysWhere) {
  EXPECT_EQ(run("{"), 2);
  EXPECT_NE(err_.find("not JSON"), std::string::npos) << err_;
  EXPECT_EQ(run("[]"), 2);
  EXPECT_EQ(run(R"({"suite": "chess", "cases": []})"), 2);
  EXPECT_NE(err_.find("unknown suite \"chess\""), std::string::npos) << err_;
  Json broken = sample();
  broken["groups"][0]["count"] = "three";
  EXPECT_EQ(run(suite(Json::array({broken}))), 2);
  EXPECT_NE(err_.find("case own/tight-rack"), std::string::npos) << err_;
  ConformanceOptions missing;
  missing.only = "no-such-case";
  EXPECT_EQ(run(suite(Json::array({sample()})), missing), 2);
  ConformanceOptions nowhere;
  nowhere.files = {"/nonexistent/cases.json"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_conformance(nowhere), 2);
  ::testing::internal::GetCapturedStderr();
}

TEST(ConformanceSkips, TheDocumentListsTheSameCases) {
  std::ifstream in("docs/conformance.md");
  ASSERT_TRUE(in) << "tests run in the source folder";
  std::set<std::string> listed;
  bool table = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "| id | reason |")
      table = true;
    else if (table && line.rfind("| ", 0) != 0 && line.rfind("|-", 0) != 0)
      table = false;
    else if (table && line.rfind("| ", 0) == 0)
      listed.insert(line.substr(2, line.find(" |", 2) - 2));
  }
  std::set<std::string> known;
  for (const ConformanceSkip& skip : conformance_skips()) {
    known.insert(std::string(skip.id));
    EXPECT_FALSE(skip.reason.empty()) << skip.id;
  }
  EXPECT_EQ(listed, known);
}

}  // namespace
}  // namespace gs
