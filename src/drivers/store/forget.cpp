#include <string>
#include <utility>
#include <vector>

#include "drivers/store/job_list.hpp"
#include "drivers/store/reading.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

// A writer that deletes so many rows is back within milliseconds.
constexpr std::int64_t kPiece = 1'000;

struct Ended {
  std::int64_t seq = 0;
  Labels labels;
};

Status read_ended(const Row& row, Ended& out) {
  out.seq = row.integer(0);
  out.labels = labels_of(row.text(1));
  return ok_status();
}

// In as few statements as parameters allow: over a network each of them is a round trip.
Status forget_labels(Session& session, const std::vector<Ended>& jobs) {
  constexpr std::size_t kMostValues = 3'000;
  std::string list;
  std::vector<Value> values;
  const auto flush = [&]() -> Status {
    if (values.empty()) return ok_status();
    Status gone = session.run(
        "DELETE FROM job_labels WHERE (key, value, seq) IN (VALUES " + list + ")", values);
    list.clear();
    values.clear();
    return gone;
  };
  for (const Ended& job : jobs)
    for (const auto& [key, value] : job.labels) {
      const std::size_t n = values.size();
      list += (n == 0 ? "($" : ", ($") + std::to_string(n + 1) + ", $" + std::to_string(n + 2) +
              ", CAST($" + std::to_string(n + 3) + " AS BIGINT))";
      values.insert(values.end(), {key, value, job.seq});
      if (values.size() < kMostValues) continue;
      if (Status gone = flush(); !gone) return gone;
    }
  return flush();
}

Result<std::int64_t> forget_jobs(Session& session, Instant before) {
  const auto ended =
      select<Ended>(session,
                    "SELECT seq, labels FROM jobs" + indexed_by(session.dialect(), "jobs_by_end") +
                        " WHERE state < 'pending' AND completed < $1"
                        " ORDER BY completed LIMIT $2",
                    {before.ms, kPiece}, read_ended);
  if (!ended) return ended.error();
  if (ended->empty()) return std::int64_t{0};
  if (const Status gone = forget_labels(session, *ended); !gone) return gone.error();
  std::string list;
  for (const Ended& job : *ended) list += (list.empty() ? "" : ", ") + std::to_string(job.seq);
  if (const Status gone = session.script("DELETE FROM jobs WHERE seq IN (" + list + ")"); !gone)
    return gone.error();
  return static_cast<std::int64_t>(ended->size());
}

// Events are numbered in the order of time: the old ones are the first ones.
Result<std::int64_t> forget_events(Session& session, Instant before) {
  const Status gone = session.run(
      "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, time FROM events ORDER BY id "
      "LIMIT $1) oldest WHERE time < $2)",
      {kPiece, before.ms});
  if (!gone) return gone.error();
  return session.changes();
}

Result<std::int64_t> forget_keys(Session& session, Instant before) {
  const Status gone = session.run(
      "DELETE FROM submit_keys WHERE (tenant, key) IN (SELECT tenant, key FROM submit_keys WHERE "
      "time < $1 ORDER BY time LIMIT $2)",
      {before.ms, kPiece});
  if (!gone) return gone.error();
  return session.changes();
}

}  // namespace

Result<std::int64_t> forget_piece(Session& session, const Retention& retention, Instant now) {
  using Forget = Result<std::int64_t> (*)(Session&, Instant);
  const std::pair<Duration, Forget> kinds[] = {{retention.jobs, forget_jobs},
                                               {retention.events, forget_events},
                                               {retention.keys, forget_keys}};
  for (const auto& [age, forget] : kinds) {
    if (age.ms <= 0) continue;
    Result<std::int64_t> gone = forget(session, now - age);
    if (!gone || *gone > 0) return gone;
  }
  return std::int64_t{0};
}

}  // namespace gs::store
