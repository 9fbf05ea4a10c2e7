#include "drivers/store/schema.hpp"

#include <string>
#include <utility>

#include "base/check.hpp"

namespace gs::store {
namespace {

// {KEY}: the primary key that is a number. {TEXT}: text in the order of its bytes.
constexpr const char* kTables = R"sql(
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  term BIGINT NOT NULL,
  turn BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  last_event BIGINT NOT NULL,
  leader BIGINT NOT NULL,
  heartbeat {TIME} NOT NULL
);
INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0, {NOW});

CREATE TABLE jobs (
  seq {KEY},
  id TEXT GENERATED ALWAYS AS ('job-' || CAST(seq AS TEXT)) {GENERATED},
  tenant {TEXT} NOT NULL,
  name {TEXT} NOT NULL,
  gpu_count INTEGER NOT NULL,
  spec TEXT NOT NULL,
  labels TEXT NOT NULL,
  array_id {TEXT} NOT NULL,
  submitted BIGINT NOT NULL,
  state {STATE} NOT NULL,
  priority INTEGER NOT NULL,
  held BOOLEAN NOT NULL,
  ending TEXT NOT NULL,
  scheduled BIGINT NOT NULL,
  started BIGINT NOT NULL,
  completed BIGINT NOT NULL,
  attempt INTEGER NOT NULL,
  preempted_count INTEGER NOT NULL,
  exit_code INTEGER,
  signal INTEGER NOT NULL,
  message TEXT NOT NULL,
  placement TEXT NOT NULL,
  gpu_ms BIGINT NOT NULL
);

CREATE TABLE job_labels (
  key {TEXT} NOT NULL,
  value {TEXT} NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (key, value, seq)
) {NO_ROWID};

CREATE TABLE tenants (
  seq {KEY},
  id TEXT GENERATED ALWAYS AS ('tenant-' || CAST(seq AS TEXT)) {GENERATED},
  name {TEXT} NOT NULL,
  spec TEXT NOT NULL,
  active BOOLEAN NOT NULL,
  created BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  max_gp_us BIGINT NOT NULL,
  max_gpu_memory_mb BIGINT NOT NULL,
  max_cpu_cores BIGINT NOT NULL,
  max_memory_mb BIGINT NOT NULL,
  max_concurrent_jobs BIGINT NOT NULL,
  current_gpu_milli BIGINT NOT NULL,
  current_gp_us DOUBLE PRECISION
    GENERATED ALWAYS AS (CAST(current_gpu_milli AS DOUBLE PRECISION) / 1000) {GENERATED},
  current_gpu_memory_mb BIGINT NOT NULL,
  current_cpu_milli BIGINT NOT NULL,
  current_memory_mb BIGINT NOT NULL,
  current_jobs BIGINT NOT NULL,
  total_jobs BIGINT NOT NULL,
  successful_jobs BIGINT NOT NULL,
  failed_jobs BIGINT NOT NULL,
  gpu_ms BIGINT NOT NULL,
  total_cost DOUBLE PRECISION NOT NULL
);

CREATE TABLE nodes (
  name {TEXT} PRIMARY KEY,
  address TEXT NOT NULL,
  version TEXT NOT NULL,
  container_runtime TEXT NOT NULL,
  gpu_count INTEGER NOT NULL,
  simulated BOOLEAN NOT NULL,
  cordoned BOOLEAN NOT NULL,
  draining BOOLEAN NOT NULL,
  registered BIGINT NOT NULL,
  node TEXT NOT NULL
);

CREATE TABLE events (
  id {KEY},
  time BIGINT NOT NULL,
  type {TEXT} NOT NULL,
  job BIGINT NOT NULL,
  tenant {TEXT} NOT NULL,
  node TEXT NOT NULL,
  message TEXT NOT NULL,
  data TEXT NOT NULL
);

CREATE TABLE usage_hours (
  hour BIGINT NOT NULL,
  tenant {TEXT} NOT NULL,
  gpu_ms BIGINT NOT NULL,
  jobs_ended BIGINT NOT NULL,
  cost DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (hour, tenant)
) {NO_ROWID};

CREATE TABLE submit_keys (
  tenant {TEXT} NOT NULL,
  key {TEXT} NOT NULL,
  body_hash BIGINT NOT NULL,
  answer TEXT NOT NULL,
  time BIGINT NOT NULL,
  PRIMARY KEY (tenant, key)
) {NO_ROWID};
)sql";

// Only for PostgreSQL. A turn is one round trip: what must not be written is stopped by an error.
constexpr const char* kAdvance = R"sql(
CREATE FUNCTION advance_turn(my_term BIGINT, new_turn BIGINT, new_seq BIGINT, new_event BIGINT)
RETURNS VOID LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE meta SET turn = new_turn, last_seq = greatest(last_seq, new_seq),
    last_event = greatest(last_event, new_event), heartbeat = clock_timestamp()
    WHERE term = my_term AND turn < new_turn;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another term, or a turn that is there already' USING ERRCODE = 'GS001';
  END IF;
END $body$;
)sql";

// Few, because every one of them is paid for by every job that is submitted. Those by priority and
// name carry the tenant, so that a walk along them for one tenant does not look at the rows. By
// priority what is live and what has ended are apart: the queue is looked at most. In the order of
// their names the states that have ended come first, then from 'pending' on those that are live; so
// said, a condition costs an insert nothing.
constexpr const char* kIndexes = R"sql(
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE INDEX jobs_by_tenant ON jobs (tenant, state, seq);
CREATE INDEX live_jobs_by_priority ON jobs (priority, seq, tenant)
  WHERE state >= 'pending';
CREATE INDEX ended_jobs_by_priority ON jobs (priority, seq, tenant)
  WHERE state < 'pending';
CREATE INDEX jobs_by_name ON jobs (name, seq, tenant);
CREATE INDEX jobs_by_array ON jobs (array_id, seq) WHERE array_id <> '';
CREATE INDEX jobs_by_end ON jobs (completed)
  WHERE state < 'pending';
CREATE INDEX events_by_job ON events (job, id) WHERE job <> 0;
CREATE INDEX events_by_tenant ON events (tenant, id) WHERE tenant <> '';
CREATE INDEX events_by_type ON events (type, id);
CREATE INDEX usage_by_tenant ON usage_hours (tenant, hour);
CREATE INDEX submit_keys_by_time ON submit_keys (time);
)sql";

constexpr const char* kAgentInstance =
    "ALTER TABLE nodes ADD COLUMN instance TEXT NOT NULL DEFAULT '';\n";

// What has ended is looked at by state ("the failed ones, most important first"), and one state may
// be rare among the others: so each has an order of its own. Jobs that wait don't pay for it.
constexpr const char* kEndedByPriority = R"sql(
DROP INDEX ended_jobs_by_priority;
CREATE INDEX ended_jobs_by_priority ON jobs (state, priority, seq, tenant)
  WHERE state < 'pending';
)sql";

constexpr const char* kStateType =
    "CREATE TYPE job_state AS ENUM ('cancelled', 'completed', 'failed', 'pending', 'preempted', "
    "'running', 'scheduled');\n";

std::string in_dialect(std::string sql, Dialect dialect) {
  const bool sqlite = dialect == Dialect::Sqlite;
  const std::pair<std::string, std::string> words[] = {
      {"{KEY}", sqlite ? "INTEGER PRIMARY KEY" : "BIGINT PRIMARY KEY"},
      {"{TEXT}", sqlite ? "TEXT" : "TEXT COLLATE \"C\""},
      {"{STATE}", sqlite ? "TEXT" : "job_state"},
      {"{GENERATED}", sqlite ? "VIRTUAL" : "STORED"},
      {"{NO_ROWID}", sqlite ? "WITHOUT ROWID" : ""},
      {"{TIME}", sqlite ? "TEXT" : "TIMESTAMPTZ"},
      {"{NOW}", sqlite ? "''" : "clock_timestamp()"}};
  for (const auto& [from, to] : words)
    for (std::size_t at = sql.find(from); at != std::string::npos; at = sql.find(from, at))
      sql.replace(at, from.size(), to);
  return sql;
}

std::string step(int number, Dialect dialect) {
  const bool sqlite = dialect == Dialect::Sqlite;
  switch (number) {
    case 1:
      return in_dialect(
          (sqlite ? "" : kStateType) + std::string(kTables) + (sqlite ? "" : kAdvance), dialect);
    case 2:
      return in_dialect(kIndexes, dialect);
    case 3:
      return kAgentInstance;
    case 4:
      return kEndedByPriority;
    default:
      check_failed(__FILE__, __LINE__, "step", "no such step");
  }
}

Status too_new(std::int64_t version) {
  return Error{ErrorCode::Conflict, "the database has schema version " + std::to_string(version) +
                                        ", this program knows versions up to " +
                                        std::to_string(schema_version()) +
                                        ": a newer gpu-scheduler has used it"};
}

// 0: there is none yet.
Result<std::int64_t> version_of(Session& session) {
  const char* there =
      session.dialect() == Dialect::Sqlite
          ? "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"
          : "SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_version')";
  Result<std::int64_t> tables = select_number(session, there);
  if (!tables || *tables == 0) return tables;
  return select_number(session, "SELECT max(version) FROM schema_version");
}

Status apply_steps(Session& session, std::int64_t have, int version) {
  if (have == 0) {
    Status made = session.script("CREATE TABLE schema_version (version INTEGER NOT NULL)");
    if (!made) return made;
  }
  for (int number = static_cast<int>(have) + 1; number <= version; ++number) {
    const Status applied = session.script(step(number, session.dialect()));
    if (!applied)
      return Error{applied.error().code,
                   "schema version " + std::to_string(number) + ": " + applied.error().message};
    Status noted = session.run("INSERT INTO schema_version VALUES ($1)", {std::int64_t{number}});
    if (!noted) return noted;
  }
  return ok_status();
}

}  // namespace

int schema_version() { return 4; }

Status migrate(Session& session, int version) {
  const bool sqlite = session.dialect() == Dialect::Sqlite;
  if (Status begun = session.script(sqlite ? "BEGIN IMMEDIATE" : "BEGIN"); !begun) return begun;
  Status status = ok_status();
  if (!sqlite) status = session.script("SELECT pg_advisory_xact_lock(7106473312)");
  if (status) {
    const Result<std::int64_t> have = version_of(session);
    if (!have)
      status = have.error();
    else if (*have > schema_version())
      status = too_new(*have);
    else
      status = apply_steps(session, *have, version);
  }
  if (status) return session.script("COMMIT");
  (void)session.script("ROLLBACK");
  return status;
}

Status check_schema(Session& session) {
  const Result<std::int64_t> have = version_of(session);
  if (!have) return have.error();
  if (*have > schema_version()) return too_new(*have);
  if (*have == schema_version()) return ok_status();
  return Error{ErrorCode::Unavailable, "the database has no schema of this version yet"};
}

}  // namespace gs::store
