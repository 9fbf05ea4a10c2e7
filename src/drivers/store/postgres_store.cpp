#include "drivers/store/postgres_store.hpp"

#include <algorithm>
#include <utility>

#include "drivers/store/reading.hpp"
#include "drivers/store/schema.hpp"

namespace gs::store {
namespace {

constexpr const char* kLock = "7106473311";  // one a database; below 2^33, above 2^32
constexpr const char* kLockHigh = "1";       // as pg_locks shows it
constexpr const char* kLockLow = "2811506015";
constexpr std::int64_t kSilenceMs = 3'000;
constexpr const char* kFenced = "GS001";  // as advance_turn() says it

Error not_leading() { return {ErrorCode::Conflict, "this scheduler does not lead"}; }

}  // namespace

PostgresStore::PostgresStore(const PostgresSettings& settings) : session_(settings) {}

Status PostgresStore::open() {
  if (Status made = migrate(session_); !made) return made;
  session_.disconnect();  // the next connection prepares what needs the schema
  session_.on_connect([this](PostgresSession&) { return on_connect(); });
  return session_.connect();
}

Status PostgresStore::on_connect() {
  // A batch finds its rows by their keys, however few there were when the plan was made.
  Status status = session_.script(
      "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off");
  if (status) status = prepare_batch_statements(session_);
  return status && term_ > 0 ? lead_again() : status;
}

Status PostgresStore::overtaken() {
  overtaken_ = true;
  return Error{ErrorCode::Conflict, "another scheduler leads now"};
}

Status PostgresStore::check_leading() const {
  if (overtaken_) return Error{ErrorCode::Conflict, "another scheduler leads now"};
  return term_ > 0 ? ok_status() : Status(not_leading());
}

Result<bool> PostgresStore::try_lock() {
  const Result<std::int64_t> got =
      select_number(session_, std::string("SELECT pg_try_advisory_lock(") + kLock + ")::int");
  if (!got) return got.error();
  return *got == 1;
}

Status PostgresStore::end_holder(int only_pid) {
  return session_.run(
      std::string("SELECT pg_terminate_backend(pid, 1000) FROM pg_locks WHERE locktype = "
                  "'advisory' AND granted AND pid <> pg_backend_pid() AND database = (SELECT oid "
                  "FROM pg_database WHERE datname = current_database()) AND objsubid = 1 AND "
                  "classid = ") +
          kLockHigh + " AND objid = " + kLockLow + " AND ($1::int8 = 0 OR pid = $1::int8)",
      {std::int64_t{only_pid}});
}

Result<bool> PostgresStore::is_leader_silent() {
  const Result<std::int64_t> age = select_number(
      session_,
      "SELECT (extract(epoch FROM clock_timestamp() - heartbeat) * 1000)::int8 FROM meta");
  if (!age) return age.error();
  return *age > kSilenceMs;
}

Status PostgresStore::raise_term() {
  const Result<std::int64_t> term = select_number(
      session_,
      "UPDATE meta SET term = term + 1, leader = pg_backend_pid(), heartbeat = clock_timestamp() "
      "RETURNING term");
  if (!term) return term.error();
  term_ = *term;
  pid_ = session_.backend_pid();
  return ok_status();
}

Result<bool> PostgresStore::try_lead() {
  if (overtaken_) return check_leading().error();
  if (term_ > 0) return true;
  Result<bool> locked = try_lock();
  if (!locked) return locked;
  if (!*locked) {
    Result<bool> silent = is_leader_silent();
    if (!silent || !*silent) return silent;
    if (const Status ended = end_holder(0); !ended) return ended.error();
    locked = try_lock();
    if (!locked || !*locked) return locked;
  }
  if (const Status raised = raise_term(); !raised) return raised.error();
  return true;
}

Status PostgresStore::lead_again() {
  const Result<std::int64_t> term = select_number(session_, "SELECT term FROM meta");
  if (!term) return term.error();
  if (*term != term_) return overtaken();
  Result<bool> locked = try_lock();
  if (locked && !*locked) {  // by our own last backend, which has not noticed yet
    if (Status ended = end_holder(pid_); !ended) return ended;
    locked = try_lock();
  }
  if (!locked) return locked.error();
  if (!*locked)
    return Error{ErrorCode::Unavailable,
                 "another scheduler is about to lead, or has just begun to"};
  Status noted = session_.run(
      "UPDATE meta SET leader = pg_backend_pid(), heartbeat = clock_timestamp() WHERE term = $1",
      {term_});
  if (!noted) return noted;
  if (session_.changes() == 0) return overtaken();
  pid_ = session_.backend_pid();
  return ok_status();
}

Status PostgresStore::renew() {
  if (Status leads = check_leading(); !leads) return leads;
  Status noted =
      session_.run("UPDATE meta SET heartbeat = clock_timestamp() WHERE term = $1", {term_});
  if (overtaken_) return overtaken();
  if (!noted) return noted;
  return session_.changes() == 1 ? ok_status() : overtaken();
}

Result<Loaded> PostgresStore::load() { return load_all(session_); }

Status PostgresStore::commit(const Batch& batch) {
  if (Status leads = check_leading(); !leads) return leads;
  std::string sql_state;
  Status status = session_.run_pipeline(statements_for(batch, term_), sql_state);
  if (overtaken_) return overtaken();
  if (!status && sql_state == kFenced) return look_at_turn(static_cast<std::int64_t>(batch.turn));
  return status;
}

// The fence did not let a turn through: because it is there already, or because we do not lead.
Status PostgresStore::look_at_turn(std::int64_t turn) {
  std::int64_t term = 0, last = 0;
  Status status = session_.query("SELECT term, turn FROM meta", {}, [&](const Row& row) {
    term = row.integer(0);
    last = row.integer(1);
  });
  if (overtaken_) return overtaken();
  if (!status) return status;
  if (term != term_) return overtaken();
  if (last == turn) return ok_status();
  return Error{ErrorCode::Conflict,
               "turn " + std::to_string(turn) + " comes after turn " + std::to_string(last)};
}

Result<std::optional<KeyRow>> PostgresStore::find_key(const std::string& tenant,
                                                      const std::string& key) {
  return find_key_in(session_, tenant, key);
}

Result<std::optional<JobRow>> PostgresStore::find_job(std::int64_t seq) {
  return find_job_in(session_, seq);
}

Result<std::int64_t> PostgresStore::forget(const Retention& retention, Instant now) {
  if (const Status leads = check_leading(); !leads) return leads.error();
  if (const Status begun = session_.script("BEGIN"); !begun) return begun.error();
  Result<std::int64_t> gone = select_number(
      session_, "SELECT count(*) FROM (SELECT 1 FROM meta WHERE term = $1 FOR SHARE) mine",
      {term_});
  if (gone && *gone == 0) gone = overtaken().error();
  if (gone) gone = forget_piece(session_, retention, now);
  const Status ended = session_.script(gone ? "COMMIT" : "ROLLBACK");
  if (gone && !ended) return ended.error();
  return gone;
}

}  // namespace gs::store

namespace gs {

Result<std::unique_ptr<Store>> open_postgres(const PostgresSettings& settings) {
  auto opened = std::make_unique<store::PostgresStore>(settings);
  if (const Status status = opened->open(); !status) return status.error();
  return std::unique_ptr<Store>(std::move(opened));
}

Result<std::unique_ptr<Reader>> read_postgres(const PostgresSettings& settings, int connections) {
  std::vector<std::unique_ptr<store::Session>> sessions;
  for (int i = 0; i < std::max(connections, 1); ++i) {
    sessions.push_back(std::make_unique<store::PostgresSession>(settings, true));
    if (i == 0)
      if (const Status there = store::check_schema(*sessions[0]); !there) return there.error();
  }
  return std::unique_ptr<Reader>(std::make_unique<store::PooledReader>(std::move(sessions)));
}

}  // namespace gs
