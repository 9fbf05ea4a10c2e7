// What the webhook counts about itself.
#pragma once

#include "net/metrics.hpp"

namespace gs::webhook {

struct WebhookMetrics {
  explicit WebhookMetrics(Metrics& m)
      : requests(m.counters("webhook_requests_total",
                            "Admission reviews by path and outcome: allowed, patched, denied, "
                            "malformed.",
                            {"path", "outcome"})),
        seconds(m.histograms(
            "webhook_request_seconds",
            "Time from a review's arrival to its answer, with reading its claim.", {"path"},
            {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10})),
        certificate_expiry(m.gauge("webhook_certificate_expiry_timestamp_seconds",
                                   "When the certificate that is served expires.")),
        certificate_changes(m.counter("webhook_certificate_changes_total",
                                      "Certificates that were taken into use.")),
        bundle_writes(m.counter("webhook_ca_bundle_writes_total",
                                "Webhook configurations whose caBundle was set right.")) {}

  Family<Counter>& requests;
  Family<Histogram>& seconds;
  Gauge& certificate_expiry;
  Counter& certificate_changes;
  Counter& bundle_writes;
};

}  // namespace gs::webhook
