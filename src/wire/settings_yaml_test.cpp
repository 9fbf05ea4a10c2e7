#include "wire/settings_yaml.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "wire/secret_file.hpp"

namespace gs {
namespace {

std::string error_of(const std::string& yaml) {
  const auto settings = decode_settings(yaml);
  return settings.ok() ? "" : settings.error().message;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string written(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(SettingsYaml, nothing_is_the_defaults) {
  for (const char* text : {"", "# nothing\n", "---\n", "api:\n"}) {
    const auto settings = decode_settings(text);
    ASSERT_TRUE(settings.ok()) << settings.error().message;
    EXPECT_EQ(settings_text(*settings), settings_text(Settings{}));
  }
}

TEST(SettingsYaml, keys_are_read) {
  const auto settings = decode_settings(
      "environment: production\n"
      "scheduler:\n"
      "  max_queue_size: 5\n"
      "  weights: {topology_alignment: 0.7}\n"
      "api: {http_port: \"8081\", cors_enabled: no}\n"
      "agent: {local: on}\n"
      "database: {password: 1234}\n");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->environment, "production");
  EXPECT_EQ(settings->scheduler.max_queue_size, 5);
  EXPECT_EQ(settings->scheduler.weights.topology_alignment, 0.7);
  EXPECT_EQ(settings->api.http_port, 8081);
  EXPECT_FALSE(settings->api.cors_enabled);
  EXPECT_EQ(settings->agent.local, Toggle::On);
  EXPECT_TRUE(settings->database.given);
  EXPECT_EQ(settings->database.password, "1234");
}

TEST(SettingsYaml, unknown_keys_have_a_line_and_a_suggestion) {
  EXPECT_EQ(error_of("# first\nenvironment: x\nscheduler:\n  max_queue_sizes: 3\n"),
            "scheduler.max_queue_sizes: unknown key, line 4; did you mean max_queue_size?");
  EXPECT_EQ(error_of("schedular: {}\n"), "schedular: unknown key, line 1; did you mean scheduler?");
  EXPECT_EQ(error_of("api:\n  frobnicate: 3\n"), "api.frobnicate: unknown key, line 2");
}

TEST(SettingsYaml, wrong_values_name_key_line_and_rule) {
  EXPECT_EQ(error_of("api:\n  http_port: eighty\n"),
            "api.http_port: must be a whole number from 0 to 65535, is `eighty`, line 2");
  EXPECT_EQ(
      error_of("api:\n  http_port: [1]\n"),
      "api.http_port: must be a whole number from 0 to 65535, is a list or a section, line 2");
  EXPECT_EQ(error_of("api: 3\n"), "api: must be a section of keys, line 1");
  EXPECT_EQ(error_of("api:\n  enable_tls:\n"),
            "api.enable_tls: must be true or false, is ``, line 2");
  EXPECT_EQ(error_of("api:\n  bind: a\n  bind: b\n"), "api.bind: given twice, line 3");
  EXPECT_EQ(error_of("database:\n"),
            "database: an empty section; give at least database.host for PostgreSQL, or remove it "
            "for SQLite, line 1");
}

TEST(SettingsYaml, all_errors_are_told_at_once) {
  EXPECT_EQ(error_of("api: {http_port: x}\nmetrics: {prot: 1}\n"),
            "api.http_port: must be a whole number from 0 to 65535, is `x`, line 1\n"
            "metrics.prot: unknown key, line 2; did you mean port?");
}

TEST(SettingsYaml, what_is_no_yaml_is_refused) {
  for (const char* text :
       {"a: [", "- a\n", "text", "a: 1\n---\nb: 2\n", "? [a]\n: b\n", "\x01", "*x", ",", "!a ,"})
    EXPECT_NE(error_of(text), "") << text;
  EXPECT_NE(error_of(std::string(1U << 21, '#')), "");
  EXPECT_NE(error_of(std::string(100'000, '[')), "");
}

TEST(SettingsYaml, the_description_is_a_file_of_defaults) {
  const auto settings = decode_settings(describe_settings());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_FALSE(settings->database.given);
  EXPECT_EQ(settings_text(*settings), settings_text(Settings{}));
}

TEST(SettingsYaml, the_text_can_be_read_again_and_has_no_secret) {
  Settings settings;
  settings.database.given = true;
  settings.database.password = "pa55";
  settings.environment = "a \"quoted\" \\ text";
  const std::string text = settings_text(settings);
  EXPECT_EQ(text.find("pa55"), std::string::npos);
  const auto again = decode_settings(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(settings_text(*again), text);
}

TEST(SettingsYaml, the_example_is_valid_and_uses_postgresql) {
  const auto settings = load_settings("config/scheduler-config.yaml", {});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_TRUE(settings->database.given);
  EXPECT_EQ(settings->database.port, 5433);
  EXPECT_EQ(settings->database.password, "gpu123");
  EXPECT_TRUE(keys_without_effect(*settings).empty());
}

TEST(SettingsYaml, the_documentation_lists_every_key) {
  const std::string document = read("docs/configuration.md");
  EXPECT_NE(document.find(settings_markdown()), std::string::npos)
      << "the tables of docs/configuration.md should be:\n"
      << settings_markdown();
}

TEST(SettingsYaml, the_environment_wins_over_the_file) {
  const std::string path = written("settings.yaml", "api: {http_port: 1, grpc_port: 2}\n");
  const auto settings = load_settings(path, {{"GPU_SCHEDULER_API_HTTP_PORT", "3"}});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->api.http_port, 3);
  EXPECT_EQ(settings->api.grpc_port, 2);
  EXPECT_EQ(load_settings(path, {{"GPU_SCHEDULER_API_HTTP_PORT", "2"}}).error().message,
            "api.grpc_port: api.http_port is 2 too");
  std::remove(path.c_str());
  EXPECT_EQ(load_settings(path, {}).error().code, ErrorCode::NotFound);
}

TEST(SecretFile, loses_one_newline_and_is_not_empty) {
  const std::string path = written("secret", "s3cret\n\n");
  EXPECT_EQ(read_secret(path).value(), "s3cret\n");
  written("secret", "s3cret\r\n");
  EXPECT_EQ(read_secret(path).value(), "s3cret");
  written("secret", "s3cret");
  EXPECT_EQ(read_secret(path).value(), "s3cret");
  written("secret", "\n");
  EXPECT_FALSE(read_secret(path).ok());
  written("secret", "");
  EXPECT_FALSE(read_secret(path).ok());
  std::remove(path.c_str());
  EXPECT_FALSE(read_secret(path).ok());
  EXPECT_FALSE(read_secret(testing::TempDir()).ok());
}

TEST(SecretFile, the_database_s_password_may_lie_in_one) {
  Settings settings;
  settings.database.password = "inline";
  EXPECT_EQ(database_password(settings).value(), "inline");
  settings.database.password_file = written("password", "from file\n");
  EXPECT_EQ(database_password(settings).value(), "from file");
  std::remove(settings.database.password_file.c_str());
}

}  // namespace
}  // namespace gs
