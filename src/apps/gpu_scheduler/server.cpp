#include "apps/gpu_scheduler/server.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include "apps/gpu_scheduler/figures.hpp"
#include "apps/gpu_scheduler/wall_clock.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "drivers/agents/agents.hpp"
#include "drivers/auth/authenticator.hpp"
#include "drivers/grpc/scheduler_service.hpp"
#include "drivers/metrics/exposition.hpp"
#include "drivers/rest/rest.hpp"
#include "drivers/store/open.hpp"
#include "net/http_server.hpp"
#include "wire/secret_file.hpp"
#include "wire/settings_yaml.hpp"

namespace gs {
namespace {

DeskOptions desk_options(const Settings& settings) {
  DeskOptions options;
  options.config = to_config(settings);
  options.lease = milliseconds(settings.agent.lease_ms);
  options.lease_margin = milliseconds(settings.agent.grace_ms) + seconds(5);
  options.offline_after = milliseconds(settings.agent.offline_after_ms);
  options.grace = milliseconds(settings.agent.grace_ms);
  options.cost_per_gpu_hour = settings.billing.cost_per_gpu_hour;
  return options;
}

std::string absolute(const std::string& path, const std::string& folder) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

struct Database {
  std::unique_ptr<Store> store;
  std::unique_ptr<Reader> reader;
};

constexpr int kReaders = 4;
constexpr std::size_t kMaxSocketPath = 104;  // what the kernel takes, with some room

Result<Database> open_database(const Settings& settings, const std::string& state_dir) {
  Database database;
  if (!settings.database.given) {
    SqliteSettings sqlite;
    sqlite.path = absolute(settings.store.path, state_dir);
    Result<std::unique_ptr<Store>> store = open_sqlite(sqlite);
    if (!store) return store.error();
    Result<std::unique_ptr<Reader>> reader = read_sqlite(sqlite, kReaders);
    if (!reader) return reader.error();
    log_info("database: SQLite", {{"path", sqlite.path}});
    database.store = std::move(*store);
    database.reader = std::move(*reader);
    return database;
  }
  Result<std::string> password = database_password(settings);
  if (!password) return password.error();
  PostgresSettings postgres;
  postgres.host = settings.database.host;
  postgres.port = settings.database.port;
  postgres.user = settings.database.user;
  postgres.password = *password;
  postgres.database = settings.database.database;
  postgres.sslmode = settings.database.sslmode;
  Result<std::unique_ptr<Store>> store = open_postgres(postgres);
  if (!store) return store.error();
  const int readers = std::clamp(settings.database.max_open_conns - 1, 1, kReaders);
  Result<std::unique_ptr<Reader>> reader = read_postgres(postgres, readers);
  if (!reader) return reader.error();
  log_info("database: PostgreSQL",
           {{"host", postgres.host}, {"port", postgres.port}, {"database", postgres.database}});
  database.store = std::move(*store);
  database.reader = std::move(*reader);
  return database;
}

}  // namespace

// Declared in the order in which they are built: each stands on those before it.
struct Server::Parts {
  Settings settings;
  Database database;
  std::unique_ptr<Authenticator> authenticator;
  Metrics metrics;
  std::unique_ptr<RateLimiter> limiter;
  std::unique_ptr<Agents> agents;
  std::unique_ptr<Service> service;
  std::unique_ptr<FiguresKeeper> figures;
  std::unique_ptr<SchedulerRpc> scheduler_rpc;
  std::unique_ptr<Rest> rest;
  std::unique_ptr<grpc::Server> grpc_server;
  int grpc_port = 0;
  std::string agent_address;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<HttpServer> metrics_http;

  void build_service();
  Status listen_grpc(const std::string& state_dir);
  Status listen_http();
  Status listen_metrics();
  std::string metrics_page() const;
};

void Server::Parts::build_service() {
  AgentsOptions agents_options;
  agents_options.lease = milliseconds(settings.agent.lease_ms);
  agents_options.heartbeat = milliseconds(settings.agent.heartbeat_interval_ms);
  agents = std::make_unique<Agents>(agents_options);

  ServiceOptions options;
  options.desk = desk_options(settings);
  options.interval = milliseconds(settings.scheduler.scheduling_interval_ms);
  options.retention.jobs = hours(24 * settings.store.retention_days_jobs);
  options.retention.events = hours(24 * settings.store.retention_days_events);
  options.retention.keys = hours(24);
  service = std::make_unique<Service>(options, *database.store, *agents, wall_clock);
  figures = std::make_unique<FiguresKeeper>(*service);
  service->observe([this](const TurnFigures& turn) { figures->note(turn); });
  agents->connect(*service, [this](std::string_view authorization) {
    return authenticator->identify(authorization, {}, wall_clock());
  });
  limiter =
      std::make_unique<RateLimiter>(settings.api.rate_limit_rps, settings.api.rate_limit_burst);
  RestOptions rest_options;
  rest_options.default_priority = settings.scheduler.default_priority;
  rest_options.cors = settings.api.cors_enabled;
  rest_options.cors_origins = settings.api.cors_origins;
  rest_options.limit_rate = auth_required(settings);
  rest_options.only_own_pages = !auth_required(settings) && is_loopback(settings.api.bind);
  rest_options.version = kVersion;
  const auto identify = [this](std::string_view authorization, std::string_view key) {
    return authenticator->identify(authorization, key, wall_clock());
  };
  rest = std::make_unique<Rest>(RestParts{*service, *database.store, *database.reader, *agents,
                                          *limiter, metrics, identify, wall_clock},
                                rest_options);
  scheduler_rpc = std::make_unique<SchedulerRpc>(SchedulerRpcParts{
      *service, *database.store, *database.reader, identify, wall_clock,
      [this](std::string_view prefix) { return sample_values(metrics_page(), prefix); },
      settings.scheduler.default_priority});
}

Status Server::Parts::listen_grpc(const std::string& state_dir) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (settings.api.enable_tls) {
    Result<std::string> certificate = read_text_file(settings.api.tls_cert_path);
    if (!certificate) return certificate.error();
    Result<std::string> key = read_text_file(settings.api.tls_key_path);
    if (!key) return key.error();
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({*key, *certificate});
    credentials = grpc::SslServerCredentials(tls);
  }
  const std::string address = settings.api.bind + ":" + std::to_string(settings.api.grpc_port);
  builder.AddListeningPort(address, credentials, &grpc_port);
  const std::string socket = std::filesystem::absolute(state_dir).string() + "/agent.sock";
  if (socket.size() < kMaxSocketPath)
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port that is taken is an error
  builder.SetMaxReceiveMessageSize(4 << 20);
  builder.RegisterService(&agents->rpc());
  builder.RegisterService(&scheduler_rpc->rpc());
  grpc_server = builder.BuildAndStart();
  if (!grpc_server || grpc_port == 0)
    return Error{ErrorCode::Unavailable, "can't listen on " + address + " (gRPC)"};
  agent_address = socket.size() < kMaxSocketPath
                      ? "unix:" + socket
                      : settings.api.bind + ":" + std::to_string(grpc_port);
  return ok_status();
}

Status Server::Parts::listen_http() {
  HttpServerOptions options;
  options.bind = settings.api.bind;
  options.port = static_cast<std::uint16_t>(settings.api.http_port);
  options.max_body_bytes = static_cast<std::size_t>(settings.api.max_body_bytes);
  options.max_connections = static_cast<std::size_t>(settings.api.max_connections);
  options.read_timeout_ms = settings.api.request_timeout_ms;
  if (settings.api.enable_tls) {
    options.tls_certificate_file = settings.api.tls_cert_path;
    options.tls_key_file = settings.api.tls_key_path;
  }
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(
      options, [this](std::shared_ptr<Exchange> exchange) { rest->handle(std::move(exchange)); });
  if (!server) return server.error();
  http = std::move(*server);
  return ok_status();
}

std::string Server::Parts::metrics_page() const {
  return exposition(settings.metrics.namespace_name, figures->figures(), metrics,
                    process_figures());
}

Status Server::Parts::listen_metrics() {
  if (!settings.metrics.enabled) return ok_status();
  HttpServerOptions options;
  options.bind = settings.api.bind;
  options.port = static_cast<std::uint16_t>(settings.metrics.port);
  Result<std::unique_ptr<HttpServer>> server =
      HttpServer::start(options, [this](std::shared_ptr<Exchange> exchange) {
        HttpResponse response;
        if (exchange->request.path == settings.metrics.path) {
          response.content_type = "text/plain; version=0.0.4; charset=utf-8";
          response.body = metrics_page();
        } else {
          response.status = 404;
          response.body = R"({"error":"metrics are at )" + settings.metrics.path + "\"}";
        }
        exchange->answer(std::move(response));
      });
  if (!server) return server.error();
  metrics_http = std::move(*server);
  return ok_status();
}

Result<std::unique_ptr<Server>> Server::start(const Settings& settings,
                                              const std::string& state_dir) {
  auto parts = std::make_unique<Parts>();
  parts->settings = settings;
  Result<Database> database = open_database(settings, state_dir);
  if (!database) return database.error();
  parts->database = std::move(*database);
  Result<std::unique_ptr<Authenticator>> authenticator = Authenticator::open(settings);
  if (!authenticator) return authenticator.error();
  parts->authenticator = std::move(*authenticator);
  parts->build_service();
  if (Status s = parts->listen_grpc(state_dir); !s) return s.error();
  if (Status s = parts->listen_http(); !s) return s.error();
  if (Status s = parts->listen_metrics(); !s) return s.error();
  parts->service->start();
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() { stop(); }

int Server::http_port() const { return parts_->http->port(); }
int Server::grpc_port() const { return parts_->grpc_port; }
const std::string& Server::agent_address() const { return parts_->agent_address; }
int Server::metrics_port() const { return parts_->metrics_http ? parts_->metrics_http->port() : 0; }

Status Server::reload(const Settings& settings) {
  if (Status s = parts_->authenticator->reload(settings); !s) return s;
  parts_->limiter->set_limit(settings.api.rate_limit_rps, settings.api.rate_limit_burst);
  parts_->service->reconfigure(desk_options(settings));
  set_log(log_level(settings), log_format(settings));
  return ok_status();
}

void Server::stop() {
  if (!parts_ || !parts_->http) return;
  parts_->http->stop();
  if (parts_->metrics_http) parts_->metrics_http->stop();
  parts_->scheduler_rpc->stop();
  parts_->agents->stop();
  parts_->grpc_server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  parts_->service->stop();
  parts_->rest->stop();
  parts_->http.reset();  // last: answers under way refer to its loop
}

}  // namespace gs
