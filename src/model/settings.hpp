// Settings: everything an operator can set about the standalone service, with its defaults.
//
// Every member is a row of the table in model/settings_keys.hpp; file, environment, documentation
// and reloading are driven by that table and by nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "model/config.hpp"

namespace gs {

enum class Toggle : std::uint8_t { Auto, On, Off };
const char* to_string(Toggle toggle);

struct SchedulerSettings {
  int scheduling_interval_ms = 1000;
  std::int64_t max_queue_size = 10'000;
  bool enable_preemption = true;
  bool enable_gang_scheduling = true;
  bool enable_thermal_aware = true;
  double thermal_threshold = 75.0;
  double thermal_hysteresis = 5.0;
  int default_priority = 100;
  std::string strategy = "balanced";
  std::string node_policy = "default";
  ScoringWeights weights;
  double aging_per_hour = 60.0;
  int tier_step = 100;
  double usage_half_life_hours = 24.0;
  int reservations = 10;
  bool enable_reclaim = true;
  bool consolidation = false;
  int max_moves = 64;
  int max_nodes_per_leaf = 0;
  int max_gpus_per_leaf = 0;
};

struct AgentSettings {
  std::string node_id;
  int heartbeat_interval_ms = 5000;
  int metrics_interval_ms = 10'000;
  int health_check_interval_ms = 30'000;
  bool dcgm_enabled = false;
  std::string dcgm_host_port = "localhost:5555";
  std::string container_runtime = "docker";
  int lease_ms = 60'000;
  int offline_after_ms = 15'000;
  int grace_ms = 30'000;
  Toggle local = Toggle::Auto;
  std::string simulate;
};

struct DatabaseSettings {
  bool given = false;  // any key of the section is set somewhere: PostgreSQL instead of SQLite
  std::string host = "localhost";
  int port = 5432;
  std::string user = "postgres";
  std::string password;
  std::string password_file;
  std::string database = "gpu_scheduler";
  std::string sslmode = "disable";
  int max_open_conns = 25;
  int max_idle_conns = 5;
  int conn_max_lifetime_mins = 30;
};

struct RedisSettings {
  std::string host = "localhost";
  int port = 6379;
  std::string password;
  int db = 0;
  int pool_size = 10;
  int min_idle_conns = 2;
};

struct KubernetesSettings {
  bool in_cluster = false;
  std::string kubeconfig_path = "~/.kube/config";
  std::string namespace_name = "gpu-system";
};

struct ApiSettings {
  std::string bind = "127.0.0.1";
  int http_port = 8080;
  int grpc_port = 9090;
  bool enable_tls = false;
  std::string tls_cert_path;
  std::string tls_key_path;
  bool cors_enabled = true;
  std::string cors_origins = "*";
  int rate_limit_rps = 100;
  int rate_limit_burst = 200;
  std::int64_t max_body_bytes = 1 << 20;
  int request_timeout_ms = 30'000;
  int max_connections = 20'000;
};

struct AuthSettings {
  Toggle enabled = Toggle::Auto;
  std::string api_keys_file;
  std::string jwt_hs256_secret_file;
  std::string jwks_file;
  std::string jwt_issuer;
  std::string jwt_audience;
  bool allow_unauthenticated = false;
  std::string agent_token_file;
};

struct StoreSettings {
  std::string path = "gpu-scheduler.db";
  int retention_days_jobs = 90;
  int retention_days_events = 30;
};

struct MetricsSettings {
  bool enabled = true;
  int port = 9091;
  std::string path = "/metrics";
  std::string namespace_name = "gpu_scheduler";
};

struct TelemetrySettings {
  bool tracing_enabled = false;
  std::string jaeger_endpoint = "http://localhost:14268/api/traces";
  bool profiling_enabled = false;
  int profiling_port = 6060;
};

struct LogSettings {
  std::string level = "info";
  std::string format = "auto";
};

struct BillingSettings {
  double cost_per_gpu_hour = 0.0;
};

struct Settings {
  std::string environment = "development";
  SchedulerSettings scheduler;
  AgentSettings agent;
  DatabaseSettings database;
  RedisSettings redis;
  KubernetesSettings kubernetes;
  ApiSettings api;
  AuthSettings auth;
  StoreSettings store;
  MetricsSettings metrics;
  TelemetrySettings telemetry;
  LogSettings log;
  BillingSettings billing;
};

// Ranges of single keys and rules about keys together. The message names key and rule; where
// several are broken it has a line for each.
Status validate(const Settings& settings);

// What the engine decides by. A job that fits no node known today waits: its node may still come.
Config to_config(const Settings& settings);

// Whether callers have to say who they are. `auto`: wherever credentials are configured, and on
// every address but loopback unless allow_unauthenticated says that this is meant.
bool auth_required(const Settings& settings);

// An address that only this machine reaches.
bool is_loopback(std::string_view address);

LogLevel log_level(const Settings& settings);
LogFormat log_format(const Settings& settings);  // auto: JSON in production, else text

}  // namespace gs
