#include "apps/gpu_cli/amounts.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "wire/yaml_json.hpp"
#include "wire/yaml_text.hpp"

namespace gs::cli {
namespace {

TEST(Amounts, memory_has_units) {
  EXPECT_EQ(*parse_mib("512"), 512);
  EXPECT_EQ(*parse_mib("512M"), 512);
  EXPECT_EQ(*parse_mib("64G"), 64 << 10);
  EXPECT_EQ(*parse_mib("64GiB"), 64 << 10);
  EXPECT_EQ(*parse_mib("64Gi"), 64 << 10);
  EXPECT_EQ(*parse_mib("1TB"), 1 << 20);
  for (const char* text : {"", "G", "-1G", "1X", "1.5G", "9999999999999999999", "9999999999T"})
    EXPECT_FALSE(parse_mib(text).ok()) << text;
}

TEST(Amounts, pairs_keep_what_follows_the_first_equals_sign) {
  const auto pairs = parse_pairs("--env", {"A=1", "B=x=y", "C="});
  EXPECT_EQ(*pairs, (Json{{"A", "1"}, {"B", "x=y"}, {"C", ""}}));
  EXPECT_EQ(parse_pairs("--label", {"alone"}).error().message,
            "--label takes KEY=VALUE, got 'alone'");
  EXPECT_FALSE(parse_pairs("--env", {"=x"}, true).ok());
}

TEST(Amounts, a_variable_alone_is_inherited) {
  setenv("GPU_CLI_TEST_VARIABLE", "here", 1);
  EXPECT_EQ(*parse_pairs("--env", {"GPU_CLI_TEST_VARIABLE"}, true),
            (Json{{"GPU_CLI_TEST_VARIABLE", "here"}}));
  EXPECT_FALSE(parse_pairs("--env", {"GPU_CLI_NOT_SET_ANYWHERE"}, true).ok());
}

TEST(Amounts, files_hold_one_job_or_many) {
  EXPECT_EQ(parse_jobs(R"({"name": "a"})")->size(), 1U);
  EXPECT_EQ(parse_jobs(R"([{"name": "a"}, {"name": "b"}])")->size(), 2U);
  EXPECT_EQ(parse_jobs(R"({"jobs": [{"name": "a"}, {"name": "b"}]})")->size(), 2U);
  const auto documents = parse_jobs("---\nname: a\ngpu_count: 2\n---\nname: b\n");
  ASSERT_EQ(documents->size(), 2U);
  EXPECT_EQ((*documents)[0], (Json{{"name", "a"}, {"gpu_count", 2}}));
  for (const char* text : {"", "[]", "[1]", "just words", "{", "a: [1"})
    EXPECT_FALSE(parse_jobs(text).ok()) << text;
}

TEST(Amounts, keys_differ) { EXPECT_NE(unique_key(), unique_key()); }

TEST(Yaml, reads_back_as_the_same) {
  const Json value = Json::parse(R"({
    "name": "a b", "count": 3, "part": 0.5, "yes": true, "none": null, "empty": "", "text": "true",
    "number": "12", "list": [1, "x", {"a": 1, "b": [2]}, [], {}], "deep": {"in": {"side": "x: y"}},
    "odd key: #": "- not a list", "lines": "one\ntwo", "word": "no"})");
  const Result<Json> again = yaml_to_json(yaml_text(value));
  ASSERT_TRUE(again.ok()) << yaml_text(value);
  EXPECT_EQ(*again, value) << yaml_text(value);
}

TEST(Yaml, looks_as_people_write_it) {
  EXPECT_EQ(yaml_text(Json{{"id", "job-1"}, {"gpus", {0, 1}}, {"node", {{"name", "n1"}}}}),
            "gpus:\n  - 0\n  - 1\nid: job-1\nnode:\n  name: n1\n");
  EXPECT_EQ(yaml_text(Json::array({{{"a", 1}, {"b", 2}}})), "- a: 1\n  b: 2\n");
}

}  // namespace
}  // namespace gs::cli
