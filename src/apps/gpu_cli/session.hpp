// The way to the server: which one it is and who we are to it, requests that are repeated where
// that is safe, and the server's refusals as errors.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/gpu_cli/config_file.hpp"
#include "net/http_client.hpp"
#include "wire/json_reader.hpp"

namespace gs::cli {

// As given on the command line; empty: not given.
struct ServerFlags {
  std::string server, api_key, ca_file, tenant;
  std::string timeout = "30s";
};

// Flags, then the environment, then the configuration file, then what is usual. A stored key goes
// only to the server that it was stored for.
struct Access {
  HttpUrl server;
  std::string api_key, ca_file;
  std::string tenant;  // empty: none is set
  Duration timeout = seconds(30);
};
Result<Access> find_access(const ServerFlags& flags, const ConfigFile& config);

using Parameters = std::initializer_list<std::pair<std::string_view, std::string_view>>;
// "?a=b&c=d" of those whose value is not empty.
std::string query_text(Parameters parameters);
std::string path_of(std::string_view collection, std::string_view id, std::string_view rest = {});

class Session {
 public:
  explicit Session(Access access);

  Result<Json> get(const std::string& target);
  // Not repeated, unless a key makes that safe.
  Result<Json> send(const std::string& method, const std::string& target, const Json& body = {},
                    const std::string& idempotency_key = {});
  // The pieces of a long answer; whole in the sense of the server, any cut in ours.
  Status stream(const std::string& target, const std::string& accept,
                const HttpClient::Piece& piece, Duration idle = {});

  // What a person calls a job: its id, the number in it, or the name of a job. To change one by
  // its name it has to be the only one of that name that has not ended.
  Result<std::string> job_id(const std::string& text, bool to_change = false);
  // The tenant for new jobs: given by id or name, set, or the only one there is.
  Result<std::string> tenant_id(const std::string& given = {});

  const Access& access() const { return access_; }

 private:
  Result<ClientResponse> request(const ClientRequest& request, bool may_repeat);
  Result<ClientResponse> once(const ClientRequest& request);
  Result<Json> body_of(const Result<ClientResponse>& answer) const;
  Error refusal(const ClientResponse& response) const;
  Error with_advice(const Error& error) const;

  Access access_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace gs::cli
