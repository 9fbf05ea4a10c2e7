// What the doors of the service (REST, gRPC, event streams) count about themselves. One for the
// process; routes are patterns ("/api/v1/jobs/:id"), never paths that callers choose.
#pragma once

#include <string>

#include "net/metrics.hpp"

namespace gs {

struct DoorMetrics {
  explicit DoorMetrics(Metrics& metrics);

  void http(const std::string& route, const std::string& method, int status, double seconds);
  void grpc(const std::string& method, const std::string& code, double seconds);

  Family<Counter>& http_requests;
  Family<Histogram>& http_seconds;
  Gauge& http_connections;
  Family<Counter>& grpc_requests;
  Family<Histogram>& grpc_seconds;
  Gauge& event_streams;
  Counter& event_streams_dropped;  // too slow a reader
  Counter& unauthenticated;
  Counter& denied;
  Counter& rate_limited;
  Gauge& agents_connected;
};

}  // namespace gs
