// An HTTP/1.1 client for one server: synchronous, with time-outs, TLS, a connection that is kept
// between requests, and answers that can be read as they come.
//
// It never sends a request twice: whether that is safe is for the caller to know. Every failure to
// get an answer (no such host, refused, timed out, cut off) is an Error with the code Unavailable;
// an answer with any status is a value.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs {

struct HttpUrl {
  bool tls = false;
  std::string host;
  std::string port;  // a number
  std::string path;  // "" or begins with '/' and does not end with it

  // Both without the port where it is the usual one.
  std::string authority() const;
  std::string text() const;
};

// http://host[:port][/path] or https://...; without a scheme http is meant. IPv6 in brackets.
Result<HttpUrl> parse_url(std::string_view text);

struct HttpClientOptions {
  Duration timeout = seconds(30);  // of connecting, and of each answer
  std::string ca_file;             // PEM; empty: those that the system trusts
  std::string user_agent = "gpu-scheduler";
  std::size_t max_body_bytes = 256U << 20;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target;  // after the URL's own path, with the query
  std::string body;    // JSON where there is one
  std::vector<std::pair<std::string, std::string>> headers;
};

struct ClientResponse {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  bool ok() const { return status >= 200 && status < 300; }
  std::string_view header(std::string_view name) const;  // "": not there
};

class HttpClient {
 public:
  HttpClient(HttpUrl server, HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  Result<ClientResponse> send(const ClientRequest& request);

  // The body of a good answer goes to `piece` as it comes, until that says false or the server
  // ends it; other answers come back with their bodies. Between pieces there may be up to `idle`
  // (0: any time).
  using Piece = std::function<bool(std::string_view)>;
  Result<ClientResponse> stream(const ClientRequest& request, const Piece& piece,
                                Duration idle = {});

  const HttpUrl& server() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
