#include "drivers/store/sqlite_store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "drivers/store/reading.hpp"
#include "drivers/store/schema.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

std::string values_for(std::span<const Column> columns) {
  std::string list;
  for (std::size_t i = 0; i < columns.size(); ++i) list += i == 0 ? "?" : ", ?";
  return list;
}

std::string insert_into(const char* table, std::span<const Column> columns) {
  return std::string("INSERT INTO ") + table + " (" + names_of(columns) + ") VALUES (" +
         values_for(columns) + ")";
}

std::string put_into(const char* table, std::span<const Column> columns) {
  return "INSERT OR REPLACE" + insert_into(table, columns).substr(6);
}

std::string change_job_sql() {
  std::string set;
  const auto columns = change_columns();
  for (std::size_t i = 1; i < columns.size(); ++i)
    set += std::string(i == 1 ? "" : ", ") + columns[i].name + " = ?" + std::to_string(i + 1);
  return "UPDATE jobs SET " + set + " WHERE seq = ?1";
}

Error not_leading() { return {ErrorCode::Conflict, "this scheduler does not lead (any more)"}; }

// The numbers that must not be given out again.
std::pair<std::int64_t, std::int64_t> last_numbers(const Batch& batch) {
  std::int64_t seq = 0, event = 0;
  for (const JobRow& job : batch.added) seq = std::max(seq, job.seq);
  for (const TenantRow& tenant : batch.tenants) seq = std::max(seq, tenant.seq);
  for (const EventRow& row : batch.events)
    event = std::max(event, static_cast<std::int64_t>(row.id));
  return {seq, event};
}

}  // namespace

SqliteStore::SqliteStore(SqliteSettings settings, std::unique_ptr<SqliteSession> session)
    : settings_(std::move(settings)), session_(std::move(session)) {}

SqliteStore::~SqliteStore() {
  if (lock_file_ >= 0) ::close(lock_file_);
}

Status SqliteStore::prepare_statements() {
  const std::pair<SqliteStatement*, std::string> kinds[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&meta_, "SELECT term, turn FROM meta"},
      {&advance_,
       "UPDATE meta SET turn = ?1, last_seq = max(last_seq, ?2), last_event = max(last_event, ?3)"},
      {&add_job_, insert_into("jobs", job_columns())},
      {&change_job_, change_job_sql()},
      {&add_label_, insert_into("job_labels", label_columns())},
      {&put_tenant_, put_into("tenants", tenant_columns())},
      {&put_node_, put_into("nodes", node_columns())},
      {&drop_node_, "DELETE FROM nodes WHERE name = ?"},
      {&add_event_, insert_into("events", event_columns())},
      {&add_usage_,
       insert_into("usage_hours", usage_columns()) +
           " ON CONFLICT (hour, tenant) DO UPDATE SET gpu_ms = gpu_ms + excluded.gpu_ms, "
           "jobs_ended = jobs_ended + excluded.jobs_ended, cost = cost + excluded.cost"},
      {&put_key_, put_into("submit_keys", key_columns())}};
  for (const auto& [statement, sql] : kinds) {
    Result<SqliteStatement> made = session_->prepare(sql);
    if (!made) return made.error();
    *statement = std::move(*made);
  }
  SqliteSettings settings = settings_;
  settings.max_pages = 0;
  Result<std::unique_ptr<SqliteSession>> second = SqliteSession::open(settings, false);
  if (!second) return second.error();
  checkpointer_ = std::make_unique<Checkpointer>(*session_, std::move(*second));
  return ok_status();
}

Result<bool> SqliteStore::try_lead() {
  if (term_ > 0) return true;
  const std::string path = settings_.path + ".lock";
  if (lock_file_ < 0) lock_file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file_ < 0)
    return Error{ErrorCode::Unavailable, "lock " + path + ": " + std::strerror(errno)};
  if (::flock(lock_file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    return Error{ErrorCode::Unavailable, "lock " + path + ": " + std::strerror(errno)};
  }
  const Status raised =
      session_->run("UPDATE meta SET term = term + 1, leader = $1, heartbeat = datetime('now')",
                    {std::int64_t{::getpid()}});
  if (!raised) return raised.error();
  const Result<std::int64_t> term = select_number(*session_, "SELECT term FROM meta");
  if (!term) return term.error();
  term_ = *term;
  return true;
}

Status SqliteStore::renew() {
  if (term_ == 0) return not_leading();
  const Result<std::int64_t> term = select_number(*session_, "SELECT term FROM meta");
  if (!term) return term.error();
  if (*term != term_) return not_leading();
  return ok_status();
}

Status SqliteStore::begin() {
  if (term_ == 0) return not_leading();
  if (Status begun = session_->run_bound(begin_); !begun) return begun;
  const int result = meta_.step();
  const std::int64_t term = sqlite3_column_int64(meta_.raw(), 0);
  turn_ = sqlite3_column_int64(meta_.raw(), 1);
  Status status = ok_status();
  if (result != SQLITE_ROW)
    status = session_->error();
  else if (term != term_)
    status = not_leading();
  meta_.reset();
  return status ? status : end(status);
}

Status SqliteStore::end(Status status) {
  if (status) status = session_->run_bound(commit_);
  if (!status && sqlite3_get_autocommit(session_->raw()) == 0) (void)session_->script("ROLLBACK");
  return status;
}

Result<Loaded> SqliteStore::load() { return load_all(*session_); }

Status SqliteStore::commit(const Batch& batch) {
  if (Status begun = begin(); !begun) return begun;
  const auto turn = static_cast<std::int64_t>(batch.turn);
  if (turn_ == turn) return end(ok_status());  // it is there already
  if (turn_ > turn)
    return end(Error{ErrorCode::Conflict, "turn " + std::to_string(turn) + " comes after turn " +
                                              std::to_string(turn_)});
  return end(write(batch));
}

template <typename Record, typename Write>
Status SqliteStore::write_all(SqliteStatement& statement, const std::vector<Record>& records,
                              Write&& write) {
  for (const Record& record : records) {
    write(statement, record);
    if (Status done = session_->run_bound(statement); !done) return done;
  }
  return ok_status();
}

Status SqliteStore::write(const Batch& batch) {
  using Statement = SqliteStatement;
  Status status = write_all(add_job_, batch.added, write_job<Statement>);
  for (const JobRow& job : batch.added)
    for (std::size_t i = 0; status && i < job.labels.size(); ++i) {
      add_label_.text(job.labels[i].first);
      add_label_.text(job.labels[i].second);
      add_label_.integer(job.seq);
      status = session_->run_bound(add_label_);
    }
  if (status) status = write_all(change_job_, batch.changed, write_change<Statement>);
  if (status) status = write_all(put_tenant_, batch.tenants, write_tenant<Statement>);
  if (status)
    status = write_all(drop_node_, batch.removed_nodes,
                       [](Statement& sink, const std::string& name) { sink.text(name); });
  if (status) status = write_all(put_node_, batch.nodes, write_node<Statement>);
  if (status) status = write_all(add_event_, batch.events, write_event<Statement>);
  if (status) status = write_all(add_usage_, batch.usage, write_usage<Statement>);
  if (status) status = write_all(put_key_, batch.keys, write_key<Statement>);
  if (!status) return status;
  const auto [seq, event] = last_numbers(batch);
  advance_.integer(static_cast<std::int64_t>(batch.turn));
  advance_.integer(seq);
  advance_.integer(event);
  return session_->run_bound(advance_);
}

Result<std::optional<KeyRow>> SqliteStore::find_key(const std::string& tenant,
                                                    const std::string& key) {
  return find_key_in(*session_, tenant, key);
}

Result<std::optional<JobRow>> SqliteStore::find_job(std::int64_t seq) {
  return find_job_in(*session_, seq);
}

Result<std::int64_t> SqliteStore::forget(const Retention& retention, Instant now) {
  if (Status begun = begin(); !begun) return begun.error();
  Result<std::int64_t> gone = forget_piece(*session_, retention, now);
  const Status ended = end(gone ? ok_status() : Status(gone.error()));
  if (!ended) return ended.error();
  return gone;
}

}  // namespace gs::store

namespace gs {

Result<std::unique_ptr<Store>> open_sqlite(const SqliteSettings& settings) {
  Result<std::unique_ptr<store::SqliteSession>> session =
      store::SqliteSession::open(settings, false);
  if (!session) return session.error();
  if (const Status made = store::migrate(**session); !made) return made.error();
  auto opened = std::make_unique<store::SqliteStore>(settings, std::move(*session));
  if (const Status prepared = opened->prepare_statements(); !prepared) return prepared.error();
  return std::unique_ptr<Store>(std::move(opened));
}

Result<std::unique_ptr<Reader>> read_sqlite(const SqliteSettings& settings, int connections) {
  std::vector<std::unique_ptr<store::Session>> sessions;
  for (int i = 0; i < std::max(connections, 1); ++i) {
    Result<std::unique_ptr<store::SqliteSession>> session =
        store::SqliteSession::open(settings, true);
    if (!session) return session.error();
    if (i == 0)
      if (const Status there = store::check_schema(**session); !there) return there.error();
    sessions.push_back(std::move(*session));
  }
  return std::unique_ptr<Reader>(std::make_unique<store::PooledReader>(std::move(sessions)));
}

}  // namespace gs
