#include "apps/gpu_cli/session.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "apps/gpu_cli/spans.hpp"
#include "base/version.hpp"
#include "net/error_codes.hpp"
#include "net/http.hpp"

namespace gs::cli {
namespace {

constexpr const char* kUsualServer = "http://localhost:8080";
constexpr int kRepeats = 3;
constexpr std::int64_t kFirstPauseMs = 200;
constexpr std::int64_t kLongestPauseMs = 30'000;  // that a server may ask for
// Of several schedulers behind one address each connection reaches any; one of them leads.
constexpr int kLeaderRepeats = 15;
constexpr std::int64_t kLeaderPauseMs = 50;

std::string first_of(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts)
    if (!text.empty()) return std::string(text);
  return {};
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool asks_for_patience(const Result<ClientResponse>& answer) {
  return answer && (answer->status == 429 || answer->status == 503);
}

// It names the leader, and is another one.
bool stands_by(const Result<ClientResponse>& answer) {
  if (!answer || answer->status != 503) return false;
  const Json body = Json::parse(answer->body, nullptr, false);
  return body.is_object() && body.contains("leader");
}

bool is_lost(const Result<ClientResponse>& answer) {
  return !answer && answer.error().code == ErrorCode::Unavailable;
}

// How long to wait before the next attempt; the server knows better than we do.
std::int64_t pause_ms(const Result<ClientResponse>& answer, int attempt) {
  if (stands_by(answer)) return kLeaderPauseMs;
  const std::int64_t usual = kFirstPauseMs << attempt;
  if (!answer) return usual;
  const std::string_view text = answer->header("Retry-After");
  std::int64_t wanted_s = 0;
  std::from_chars(text.data(), text.data() + text.size(), wanted_s);
  return std::max(usual, std::clamp<std::int64_t>(wanted_s, 0, 1'000'000) * 1000);
}

}  // namespace

Result<Access> find_access(const ServerFlags& flags, const ConfigFile& config) {
  Access access;
  const std::string server =
      first_of({flags.server, variable("GPU_SCHEDULER_URL"), variable("GPU_SCHEDULER_API_URL"),
                config.server, kUsualServer});
  Result<HttpUrl> url = parse_url(server);
  if (!url) return url.error();
  access.server = *url;
  const Result<HttpUrl> stored = parse_url(config.server);
  const bool is_stored_one = stored && stored->text() == url->text();
  access.api_key = first_of({flags.api_key, variable("GPU_SCHEDULER_API_KEY"),
                             is_stored_one ? std::string_view(config.api_key) : ""});
  if (access.api_key.find_first_of("\r\n") != std::string::npos)
    return invalid("the API key has more than one line");
  access.ca_file = first_of({flags.ca_file, variable("GPU_SCHEDULER_CA_FILE"),
                             is_stored_one ? std::string_view(config.ca_file) : ""});
  access.tenant = first_of({flags.tenant, variable("GPU_SCHEDULER_TENANT_ID"), config.tenant_id});
  const std::string& timeout = flags.timeout;
  const bool is_bare = timeout.find_first_not_of("0123456789") == std::string::npos;
  Result<Duration> span = parse_span(is_bare ? timeout + "s" : timeout);
  if (!span) return invalid("--timeout: " + span.error().message);
  access.timeout = *span;
  return access;
}

std::string query_text(Parameters parameters) {
  std::string out;
  for (const auto& [key, value] : parameters)
    if (!value.empty())
      out += fmt::format("{}{}={}", out.empty() ? '?' : '&', key, percent_encode(value));
  return out;
}

std::string path_of(std::string_view collection, std::string_view id, std::string_view rest) {
  return fmt::format("/api/v1/{}/{}{}{}", collection, percent_encode(id), rest.empty() ? "" : "/",
                     rest);
}

Session::Session(Access access) : access_(std::move(access)) {
  HttpClientOptions options;
  options.timeout = access_.timeout;
  options.ca_file = access_.ca_file;
  options.user_agent = fmt::format("gpu-cli/{}", kVersion);
  client_ = std::make_unique<HttpClient>(access_.server, std::move(options));
}

Error Session::with_advice(const Error& error) const {
  if (error.code == ErrorCode::Unauthenticated)
    return {
        error.code,
        error.message + "\n(give a key with --api-key, GPU_SCHEDULER_API_KEY or gpu-cli login)"};
  return {error.code, error.message +
                          "\n(the server is set with --server URL, GPU_SCHEDULER_URL or gpu-cli "
                          "login; start one with: gpu-scheduler serve)"};
}

Error Session::refusal(const ClientResponse& response) const {
  const Json body = Json::parse(response.body, nullptr, false);
  const bool has_message = body.is_object() && body.contains("error") && body["error"].is_string();
  Error error{error_code_of_http(response.status),
              has_message ? body["error"].get<std::string>()
                          : fmt::format("{} answered with HTTP status {}", access_.server.text(),
                                        response.status)};
  return error.code == ErrorCode::Unauthenticated ? with_advice(error) : error;
}

Result<ClientResponse> Session::once(const ClientRequest& request) {
  ClientRequest copy = request;
  if (!access_.api_key.empty())
    copy.headers.emplace_back("Authorization", "Bearer " + access_.api_key);
  return client_->send(copy);
}

Result<ClientResponse> Session::request(const ClientRequest& request, bool may_repeat) {
  for (int attempt = 0;; ++attempt) {
    Result<ClientResponse> answer = once(request);
    const bool is_over = !is_lost(answer) && !asks_for_patience(answer);
    const int repeats = stands_by(answer) ? kLeaderRepeats : kRepeats;
    if (is_over || !may_repeat || attempt >= repeats) return answer;
    const std::int64_t pause = pause_ms(answer, attempt);
    if (pause > kLongestPauseMs) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

Result<Json> Session::body_of(const Result<ClientResponse>& answer) const {
  if (!answer)
    return answer.error().code == ErrorCode::Unavailable ? with_advice(answer.error())
                                                         : answer.error();
  if (!answer->ok()) return refusal(*answer);
  Json body = Json::parse(answer->body, nullptr, false);
  if (body.is_discarded())
    return Error{ErrorCode::Internal,
                 access_.server.text() + " does not answer like a gpu-scheduler: no JSON"};
  return body;
}

Result<Json> Session::get(const std::string& target) {
  ClientRequest ask;
  ask.target = target;
  return body_of(request(ask, true));
}

Result<Json> Session::send(const std::string& method, const std::string& target, const Json& body,
                           const std::string& idempotency_key) {
  ClientRequest ask;
  ask.method = method;
  ask.target = target;
  if (!body.is_null()) ask.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!idempotency_key.empty()) ask.headers.emplace_back("Idempotency-Key", idempotency_key);
  return body_of(request(ask, !idempotency_key.empty()));
}

Status Session::stream(const std::string& target, const std::string& accept,
                       const HttpClient::Piece& piece, Duration idle) {
  ClientRequest ask;
  ask.target = target;
  ask.headers.emplace_back("Accept", accept);
  if (!access_.api_key.empty())
    ask.headers.emplace_back("Authorization", "Bearer " + access_.api_key);
  const Result<ClientResponse> answer = client_->stream(ask, piece, idle);
  if (!answer) return with_advice(answer.error());
  if (!answer->ok()) return refusal(*answer);
  return ok_status();
}

}  // namespace gs::cli
