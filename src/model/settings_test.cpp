#include "model/settings.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "model/settings_keys.hpp"

namespace gs {
namespace {

std::string error_of(const Settings& settings) {
  const Status status = validate(settings);
  return status.ok() ? "" : status.error().message;
}

std::string environment_error(const Environment& environment) {
  Settings settings;
  const Status status = apply_environment(settings, environment);
  return status.ok() ? "" : status.error().message;
}

TEST(Settings, defaults_are_valid) { EXPECT_EQ(error_of(Settings{}), ""); }

TEST(Settings, keys_are_unique_and_each_names_a_member_of_its_own) {
  std::set<std::string> paths, names;
  std::set<const void*> places;
  Settings settings;
  for (const SettingKey& key : setting_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_TRUE(names.insert(environment_name(key)).second) << key.path;
    const void* place =
        std::visit([](auto* p) { return static_cast<const void*>(p); }, key.ref(settings));
    EXPECT_TRUE(places.insert(place).second) << key.path << ": two keys for one member";
    EXPECT_GT(std::string(key.help).size(), 0U) << key.path;
    const SettingRef ref = key.ref(settings);
    const bool is_number = std::holds_alternative<int*>(ref) ||
                           std::holds_alternative<double*>(ref) ||
                           std::holds_alternative<std::int64_t*>(ref);
    EXPECT_TRUE(!is_number || key.min < key.max) << key.path << ": a number without a range";
  }
}

TEST(Settings, values_keep_their_rule) {
  Settings settings;
  const SettingKey* port = find_setting("api.http_port");
  ASSERT_NE(port, nullptr);
  for (const char* bad : {"", "x", "80x", "-1", "65536", "8080.5", "99999999999999999999", " 80"})
    EXPECT_FALSE(set_value(*port, settings, bad).ok()) << bad;
  EXPECT_EQ(settings.api.http_port, 8080);
  EXPECT_EQ(set_value(*port, settings, "x").error().message,
            "must be a whole number from 0 to 65535, is `x`");
  ASSERT_TRUE(set_value(*port, settings, "18080").ok());
  EXPECT_EQ(settings.api.http_port, 18080);

  const SettingKey* threshold = find_setting("scheduler.thermal_threshold");
  for (const char* bad : {"nan", "inf", "1e9", "-0.1", "hot"})
    EXPECT_FALSE(set_value(*threshold, settings, bad).ok()) << bad;
  EXPECT_EQ(set_value(*find_setting("log.level"), settings, "warning").error().message,
            "must be one of debug, info, warn, error, off, is `warning`; did you mean warn?");
  EXPECT_FALSE(set_value(*find_setting("store.path"), settings, "a\nb").ok());
}

TEST(Settings, secrets_are_not_repeated_in_messages) {
  Settings settings;
  const Status status = set_value(*find_setting("database.password"), settings, "pa\nss");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message.find("pa"), std::string::npos) << status.error().message;
}

TEST(Settings, the_environment_overrides) {
  Settings settings;
  ASSERT_TRUE(
      apply_environment(settings, {{"GPU_SCHEDULER_API_HTTP_PORT", "18080"},
                                   {"GPU_SCHEDULER_ENVIRONMENT", "production"},
                                   {"GPU_SCHEDULER_SCHEDULER_WEIGHTS_TOPOLOGY_ALIGNMENT", "0.5"},
                                   {"GPU_SCHEDULER_AGENT_LOCAL", "off"}})
          .ok());
  EXPECT_EQ(settings.api.http_port, 18080);
  EXPECT_EQ(settings.environment, "production");
  EXPECT_EQ(settings.scheduler.weights.topology_alignment, 0.5);
  EXPECT_EQ(settings.agent.local, Toggle::Off);
  EXPECT_FALSE(settings.database.given);
  EXPECT_EQ(log_format(settings), LogFormat::Json);
}

TEST(Settings, a_database_variable_chooses_the_database) {
  Settings settings;
  ASSERT_TRUE(apply_environment(settings, {{"GPU_SCHEDULER_DATABASE_PORT", "5433"}}).ok());
  EXPECT_TRUE(settings.database.given);
  EXPECT_EQ(settings.database.port, 5433);
}

TEST(Settings, a_variable_with_a_typo_is_an_error) {
  EXPECT_EQ(environment_error({{"GPU_SCHEDULER_DATABASE_PASWORD", "secret"}}),
            "GPU_SCHEDULER_DATABASE_PASWORD: unknown setting; did you mean "
            "GPU_SCHEDULER_DATABASE_PASSWORD?");
  EXPECT_EQ(environment_error({{"GPU_SCHEDULER_API_HTTP_PORT", "http"}}),
            "GPU_SCHEDULER_API_HTTP_PORT: must be a whole number from 0 to 65535, is `http`");
}

TEST(Settings, variables_for_others_are_left_alone) {
  EXPECT_EQ(environment_error({{"GPU_SCHEDULER_JOB_ID", "job-1"},
                               {"GPU_SCHEDULER_RANK", "0"},
                               {"GPU_SCHEDULER_API_KEY", "k"},
                               {"GPU_SCHEDULER_API_SERVICE_HOST", "10.0.0.1"},
                               {"GPU_SCHEDULER_METRICS_PORT", "tcp://10.0.0.1:9091"},
                               {"GPU_SCHEDULER_METRICS_PORT_9091_TCP_PORT", "9091"},
                               {"PATH", "/bin"}}),
            "");
}

TEST(Settings, others_addresses_need_auth_or_an_explicit_yes) {
  Settings settings;
  settings.api.bind = "0.0.0.0";
  EXPECT_NE(error_of(settings).find("auth.allow_unauthenticated"), std::string::npos);
  settings.auth.enabled = Toggle::Off;
  EXPECT_NE(error_of(settings).find("which others can reach"), std::string::npos);
  settings.auth.allow_unauthenticated = true;
  EXPECT_EQ(error_of(settings), "");
  EXPECT_FALSE(auth_required(settings));
  settings.auth = {};
  settings.auth.api_keys_file = "keys";
  EXPECT_EQ(error_of(settings), "");
  EXPECT_TRUE(auth_required(settings));
}

TEST(Settings, on_loopback_auth_is_on_only_with_credentials) {
  Settings settings;
  EXPECT_FALSE(auth_required(settings));
  settings.auth.enabled = Toggle::On;
  EXPECT_NE(error_of(settings), "");
  settings.auth.enabled = Toggle::Auto;
  settings.auth.jwks_file = "keys.json";
  EXPECT_TRUE(auth_required(settings));
}

TEST(Settings, loopback_is_what_only_this_machine_reaches) {
  for (const char* yes : {"127.0.0.1", "127.8.8.8", "::1", "localhost"})
    EXPECT_TRUE(is_loopback(yes)) << yes;
  for (const char* no : {"0.0.0.0", "::", "127.evil.example", "128.0.0.1", "", "127.", "127.1"})
    EXPECT_FALSE(is_loopback(no)) << no;
}

TEST(Settings, rules_about_keys_together) {
  const auto broken = [](auto change) {
    Settings settings;
    change(settings);
    return error_of(settings);
  };
  EXPECT_EQ(broken([](Settings& s) { s.api.grpc_port = 8080; }),
            "api.grpc_port: api.http_port is 8080 too");
  EXPECT_EQ(broken([](Settings& s) { s.api.grpc_port = s.api.http_port = 0; }), "");
  EXPECT_EQ(broken([](Settings& s) { s.api.enable_tls = true; }),
            "api.enable_tls: needs api.tls_cert_path and api.tls_key_path");
  EXPECT_NE(broken([](Settings& s) { s.agent.heartbeat_interval_ms = 10'000; }), "");
  EXPECT_NE(broken([](Settings& s) { s.agent.lease_ms = 10'000; }), "");
  EXPECT_NE(broken([](Settings& s) { s.metrics.namespace_name = "9x"; }), "");
  EXPECT_NE(broken([](Settings& s) { s.metrics.path = "metrics"; }), "");
  EXPECT_NE(broken([](Settings& s) { s.database.password = s.database.password_file = "x"; }), "");
  EXPECT_NE(broken([](Settings& s) { s.api.max_connections = 0; }), "");
}

TEST(Settings, become_the_engine_s_config) {
  Settings settings;
  settings.scheduler.strategy = "distributed";
  settings.scheduler.thermal_threshold = 80.6;
  settings.scheduler.usage_half_life_hours = 0.5;
  settings.scheduler.enable_preemption = false;
  const Config config = to_config(settings);
  EXPECT_EQ(config.strategy, Strategy::Distributed);
  EXPECT_EQ(config.thermal_threshold_c, 81);
  EXPECT_EQ(config.usage_half_life, minutes(30));
  EXPECT_FALSE(config.preemption);
  EXPECT_FALSE(config.refuse_never);
  EXPECT_EQ(config.max_queue, 10'000);
}

TEST(Settings, keys_without_effect_are_listed_when_set) {
  Settings settings;
  EXPECT_TRUE(keys_without_effect(settings).empty());
  settings.redis.host = "cache";
  settings.telemetry.tracing_enabled = true;
  EXPECT_EQ(keys_without_effect(settings),
            (std::vector<std::string>{"redis.host", "telemetry.tracing_enabled"}));
}

TEST(Settings, keys_that_another_one_makes_meaningless_are_listed) {
  Settings settings;
  settings.store.path = "elsewhere.db";
  settings.agent.simulate = "2xA100";
  settings.api.tls_cert_path = "cert.pem";
  EXPECT_EQ(keys_without_effect(settings), (std::vector<std::string>{"api.tls_cert_path"}));
  settings.database.given = true;
  settings.database.max_idle_conns = 3;
  settings.agent.local = Toggle::Off;
  settings.api.enable_tls = true;
  std::vector<std::string> keys = keys_without_effect(settings);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys,
            (std::vector<std::string>{"agent.simulate", "database.max_idle_conns", "store.path"}));
}

TEST(Settings, a_change_says_whether_it_needs_a_restart) {
  Settings before, after;
  after.log.level = "debug";
  after.api.http_port = 1;
  after.redis.db = 3;
  const SettingsChange change = compare(before, after);
  EXPECT_EQ(change.reloadable, std::vector<std::string>{"log.level"});
  EXPECT_EQ(change.restart, std::vector<std::string>{"api.http_port"});
}

}  // namespace
}  // namespace gs
