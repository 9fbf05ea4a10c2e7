#include "net/door_metrics.hpp"

#include <vector>

namespace gs {
namespace {

std::vector<double> seconds_bounds() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

}  // namespace

DoorMetrics::DoorMetrics(Metrics& m)
    : http_requests(m.counters("http_requests_total", "Requests over HTTP that were answered.",
                               {"route", "method", "status"})),
      http_seconds(m.histograms("http_request_seconds",
                                "Time from a request's first byte to the end of its answer.",
                                {"route", "method"}, seconds_bounds())),
      http_connections(m.gauge("http_connections", "Open HTTP connections.")),
      grpc_requests(m.counters("grpc_requests_total", "Calls over gRPC that have ended.",
                               {"method", "code"})),
      grpc_seconds(m.histograms("grpc_request_seconds", "Time that calls over gRPC took.",
                                {"method"}, seconds_bounds())),
      event_streams(m.gauge("event_streams", "Open streams of events.")),
      event_streams_dropped(m.counter("event_streams_dropped_total",
                                      "Streams of events that were ended for reading too slowly.")),
      unauthenticated(m.counter("unauthenticated_requests_total",
                                "Requests refused because nobody knows who made them.")),
      denied(m.counter("denied_requests_total",
                       "Requests refused because their caller may not make them.")),
      rate_limited(m.counter("rate_limited_requests_total",
                             "Requests refused because their caller made too many.")),
      agents_connected(m.gauge("agents_connected", "Agents with an open stream.")) {}

void DoorMetrics::http(const std::string& route, const std::string& method, int status,
                       double seconds) {
  http_requests.with({route, method, std::to_string(status)}).add();
  http_seconds.with({route, method}).observe(seconds);
}

void DoorMetrics::grpc(const std::string& method, const std::string& code, double seconds) {
  grpc_requests.with({method, code}).add();
  grpc_seconds.with({method}).observe(seconds);
}

}  // namespace gs
