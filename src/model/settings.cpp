#include "model/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "model/settings_keys.hpp"

namespace gs {
namespace {

using Errors = std::vector<std::string>;

bool has_credentials(const AuthSettings& auth) {
  return !auth.api_keys_file.empty() || !auth.jwt_hs256_secret_file.empty() ||
         !auth.jwks_file.empty();
}

void check_api(const Settings& s, Errors& errors) {
  if (s.api.bind.empty()) errors.emplace_back("api.bind: must name an address");
  if (s.api.enable_tls && (s.api.tls_cert_path.empty() || s.api.tls_key_path.empty()))
    errors.emplace_back("api.enable_tls: needs api.tls_cert_path and api.tls_key_path");
  const std::array<std::pair<const char*, int>, 3> ports{
      {{"api.http_port", s.api.http_port},
       {"api.grpc_port", s.api.grpc_port},
       {"metrics.port", s.metrics.enabled ? s.metrics.port : 0}}};
  for (std::size_t i = 0; i < ports.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (ports[i].second != 0 && ports[i].second == ports[j].second)
        errors.push_back(
            fmt::format("{}: {} is {} too", ports[i].first, ports[j].first, ports[j].second));
}

void check_auth(const Settings& s, Errors& errors) {
  const bool required = auth_required(s);
  if (required && !has_credentials(s.auth))
    errors.push_back(fmt::format(
        "auth.enabled: callers of {} have to log in, but none of auth.api_keys_file, "
        "auth.jwt_hs256_secret_file and auth.jwks_file is set; to let everybody do everything, set "
        "auth.allow_unauthenticated: true",
        s.api.bind));
  if (!required && !is_loopback(s.api.bind) && !s.auth.allow_unauthenticated)
    errors.push_back(fmt::format(
        "auth.enabled: off, and api.bind is {}, which others can reach; if that is meant, set "
        "auth.allow_unauthenticated: true",
        s.api.bind));
}

void check_agent(const AgentSettings& agent, Errors& errors) {
  if (agent.offline_after_ms < 2 * agent.heartbeat_interval_ms)
    errors.emplace_back(
        "agent.offline_after_ms: must be at least twice agent.heartbeat_interval_ms, or one late "
        "heartbeat takes a node away");
  if (agent.lease_ms < agent.offline_after_ms)
    errors.emplace_back("agent.lease_ms: must not be shorter than agent.offline_after_ms");
}

void check_metrics(const MetricsSettings& metrics, Errors& errors) {
  if (!metrics.path.starts_with('/') || metrics.path.find_first_of(" ?#") != std::string::npos)
    errors.emplace_back("metrics.path: must begin with / and have no space, ? or #");
  const std::string& name = metrics.namespace_name;
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
  if (name.empty() || !good || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    errors.emplace_back(
        "metrics.namespace: must be letters, digits and _, and begin with no digit");
}

void check_rest(const Settings& s, Errors& errors) {
  if (s.environment.empty()) errors.emplace_back("environment: must not be empty");
  if (!s.database.password.empty() && !s.database.password_file.empty())
    errors.emplace_back("database.password_file: database.password is set too");
  if (s.database.given && (s.database.host.empty() || s.database.database.empty()))
    errors.emplace_back("database.host, database.database: must not be empty");
  if (!s.database.given && s.store.path.empty())
    errors.emplace_back("store.path: must not be empty");
  if (s.database.max_idle_conns > s.database.max_open_conns)
    errors.emplace_back("database.max_idle_conns: must not exceed database.max_open_conns");
}

Strategy strategy_of(const std::string& name) {
  if (name == "consolidated") return Strategy::Consolidated;
  if (name == "distributed") return Strategy::Distributed;
  return Strategy::Balanced;
}

}  // namespace

const char* to_string(Toggle toggle) {
  switch (toggle) {
    case Toggle::On:
      return "on";
    case Toggle::Off:
      return "off";
    default:
      return "auto";
  }
}

bool is_loopback(std::string_view address) {
  if (address == "localhost" || address == "::1" || address == "[::1]") return true;
  if (!address.starts_with("127.")) return false;
  int dots = 0;  // 127.evil.example is a name
  for (const char c : address) {
    if (c == '.')
      ++dots;
    else if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      return false;
  }
  return dots == 3;
}

bool auth_required(const Settings& s) {
  if (s.auth.enabled != Toggle::Auto) return s.auth.enabled == Toggle::On;
  return has_credentials(s.auth) || (!is_loopback(s.api.bind) && !s.auth.allow_unauthenticated);
}

Status validate(const Settings& settings) {
  Errors errors;
  for (const SettingKey& key : setting_keys())
    if (const Status status = check_value(key, settings); !status.ok())
      errors.push_back(fmt::format("{}: {}", key.path, status.error().message));
  check_api(settings, errors);
  check_auth(settings, errors);
  check_agent(settings.agent, errors);
  check_metrics(settings.metrics, errors);
  check_rest(settings, errors);
  if (errors.empty())
    if (const Status status = validate(to_config(settings)); !status.ok())
      errors.push_back("scheduler: " + status.error().message);
  if (!errors.empty()) return invalid(fmt::format("{}", fmt::join(errors, "\n")));
  return ok_status();
}

Config to_config(const Settings& settings) {
  const SchedulerSettings& s = settings.scheduler;
  Config config;
  config.strategy = strategy_of(s.strategy);
  config.node_policy = s.node_policy;
  config.weights = s.weights;
  config.aging_per_hour = s.aging_per_hour;
  config.tier_step = s.tier_step;
  config.usage_half_life = milliseconds(std::llround(s.usage_half_life_hours * 3'600'000.0));
  config.reservations = s.reservations;
  config.preemption = s.enable_preemption;
  config.reclaim = s.enable_reclaim;
  config.consolidation = s.consolidation;
  config.max_moves = s.max_moves;
  config.gang_scheduling = s.enable_gang_scheduling;
  config.thermal_aware = s.enable_thermal_aware;
  config.thermal_threshold_c = static_cast<int>(std::lround(s.thermal_threshold));
  config.thermal_hysteresis_c = static_cast<int>(std::lround(s.thermal_hysteresis));
  config.max_nodes_per_leaf = s.max_nodes_per_leaf;
  config.max_gpus_per_leaf = s.max_gpus_per_leaf;
  config.refuse_never = false;
  config.max_queue = s.max_queue_size;
  return config;
}

LogLevel log_level(const Settings& settings) {
  const std::string& level = settings.log.level;
  if (level == "debug") return LogLevel::Debug;
  if (level == "warn") return LogLevel::Warn;
  if (level == "error") return LogLevel::Error;
  if (level == "off") return LogLevel::Off;
  return LogLevel::Info;
}

LogFormat log_format(const Settings& settings) {
  if (settings.log.format == "auto")
    return settings.environment == "production" ? LogFormat::Json : LogFormat::Text;
  return settings.log.format == "json" ? LogFormat::Json : LogFormat::Text;
}

}  // namespace gs
