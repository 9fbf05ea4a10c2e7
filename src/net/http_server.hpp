// An HTTP/1.1 server: keep-alive, limits, time-outs, streams, WebSockets, TLS. It runs on a thread
// of its own and knows nothing about what it serves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/http.hpp"

namespace gs {

struct HttpServerOptions {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any that is free
  std::size_t max_body_bytes = 1 << 20;
  std::size_t max_connections = 20'000;
  int idle_timeout_ms = 75'000;
  int read_timeout_ms = 30'000;
  std::string tls_certificate_file, tls_key_file;  // both: HTTPS
  std::string tls_certificate, tls_key;            // the same as PEM texts; they win over files
};

class HttpServer {
 public:
  // An address that can't be had, or a certificate that can't be read, is an error.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler handler);
  ~HttpServer();

  std::uint16_t port() const;
  std::size_t connections() const;
  // PEM texts for connections that come from now on; those that are open keep theirs. From any
  // thread, of a server that was started with a certificate. What can't be used changes nothing.
  Status renew_tls(const std::string& certificate, const std::string& key);
  // Serves on, but asks everybody to go: each answer is the last of its connection.
  void drain();
  // Takes no new connections, lets answers under way finish for a moment, closes the rest.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gs
