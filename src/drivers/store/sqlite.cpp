#include "drivers/store/sqlite.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace gs::store {
namespace {

// More kinds of queries than this are prepared anew each time.
constexpr std::size_t kCachedStatements = 256;

class SqliteRow final : public Row {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  bool is_null(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  std::int64_t integer(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  double real(int column) const override { return sqlite3_column_double(statement_, column); }
  std::string_view text(int column) const override {
    const void* bytes = sqlite3_column_text(statement_, column);
    if (bytes == nullptr) return {};
    return {static_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
};

// So that nobody else can read it: SQLite would create it as the umask says.
Status create_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return Error{ErrorCode::Unavailable, "database " + path + ": " + std::strerror(errno)};
  ::close(file);
  return ok_status();
}

ErrorCode code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
      return ErrorCode::Unavailable;
    default:
      return ErrorCode::Internal;
  }
}

}  // namespace

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : raw_(std::exchange(other.raw_, nullptr)), bound_(other.bound_) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
  std::swap(raw_, other.raw_);
  std::swap(bound_, other.bound_);
  return *this;
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(raw_); }

Result<std::unique_ptr<SqliteSession>> SqliteSession::open(const SqliteSettings& settings,
                                                           bool read_only) {
  if (!read_only)
    if (const Status made = create_private(settings.path); !made) return made.error();
  std::unique_ptr<SqliteSession> session(new SqliteSession(settings.path));
  const int flags = (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  if (sqlite3_open_v2(settings.path.c_str(), &session->db_, flags, nullptr) != SQLITE_OK)
    return session->error();
  sqlite3_extended_result_codes(session->db_, 1);
  sqlite3_busy_timeout(session->db_, settings.busy_timeout_ms);
  std::string pragmas = "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;";
  if (read_only)
    pragmas += "PRAGMA query_only = ON;";
  else
    pragmas += "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
  if (settings.max_pages > 0)
    pragmas += "PRAGMA max_page_count = " + std::to_string(settings.max_pages) + ";";
  if (const Status set = session->script(pragmas); !set) return set.error();
  return session;
}

SqliteSession::~SqliteSession() {
  cache_.clear();
  sqlite3_close_v2(db_);
}

Error SqliteSession::error() const {
  const int code = sqlite3_extended_errcode(db_);
  std::string message = "database " + path_ + ": " + sqlite3_errmsg(db_);
  if ((code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT)
    message += " (it is damaged, or no SQLite database; restore it from a backup)";
  return {code_of(code), std::move(message)};
}

Result<SqliteStatement> SqliteSession::prepare(const std::string& sql) {
  SqliteStatement statement;
  if (sqlite3_prepare_v3(db_, sql.c_str(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement.raw_, nullptr) != SQLITE_OK)
    return error();
  return statement;
}

Result<SqliteStatement*> SqliteSession::cached(const std::string& sql) {
  const auto known = cache_.find(sql);
  if (known != cache_.end()) return &known->second;
  Result<SqliteStatement> made = prepare(sql);
  if (!made) return made.error();
  if (cache_.size() >= kCachedStatements) cache_.clear();
  return &cache_.emplace(sql, std::move(*made)).first->second;
}

Status SqliteSession::query(const std::string& sql, const std::vector<Value>& values,
                            const std::function<void(const Row&)>& each) {
  const Result<SqliteStatement*> found = cached(sql);
  if (!found) return found.error();
  SqliteStatement& statement = **found;
  for (const Value& value : values) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      statement.integer(*integer);
    else if (const auto* real = std::get_if<double>(&value))
      statement.real(*real);
    else
      statement.text(std::get<std::string>(value));
  }
  const SqliteRow row(statement.raw());
  int result = SQLITE_ROW;
  while ((result = statement.step()) == SQLITE_ROW) each(row);
  Status status = result == SQLITE_DONE ? ok_status() : Status(error());
  statement.reset();
  return status;
}

Status SqliteSession::script(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return ok_status();
  return error();
}

Status SqliteSession::run_bound(SqliteStatement& statement) {
  const int result = statement.step();
  Status status = result == SQLITE_DONE ? ok_status() : Status(error());
  statement.reset();
  return status;
}

}  // namespace gs::store
