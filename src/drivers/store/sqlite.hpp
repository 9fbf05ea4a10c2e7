// SQLite as a Session: one connection with the statements it has prepared. Used by one thread at a
// time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sqlite3.h>

#include "base/result.hpp"
#include "drivers/store/open.hpp"
#include "drivers/store/session.hpp"

namespace gs::store {

// A prepared statement; as a sink it takes its values from the first on. Texts given to text() must
// live until it has run.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  void integer(std::int64_t value) { sqlite3_bind_int64(raw_, ++bound_, value); }
  void real(double value) { sqlite3_bind_double(raw_, ++bound_, value); }
  void null() { sqlite3_bind_null(raw_, ++bound_); }
  void text(std::string_view value) { bind(value, SQLITE_STATIC); }
  void own_text(const std::string& value) { bind(value, SQLITE_TRANSIENT); }

  // SQLITE_ROW, SQLITE_DONE or an error.
  int step() { return sqlite3_step(raw_); }
  void reset() {
    sqlite3_reset(raw_);
    bound_ = 0;
  }
  sqlite3_stmt* raw() const { return raw_; }

 private:
  friend class SqliteSession;
  void bind(std::string_view value, sqlite3_destructor_type life) {
    sqlite3_bind_text(raw_, ++bound_, value.data() == nullptr ? "" : value.data(),
                      static_cast<int>(value.size()), life);
  }
  sqlite3_stmt* raw_ = nullptr;
  int bound_ = 0;
};

class SqliteSession final : public Session {
 public:
  // `read_only`: the file must exist.
  static Result<std::unique_ptr<SqliteSession>> open(const SqliteSettings& settings,
                                                     bool read_only);
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;
  ~SqliteSession() override;

  Dialect dialect() const override { return Dialect::Sqlite; }
  Status query(const std::string& sql, const std::vector<Value>& values,
               const std::function<void(const Row&)>& each) override;
  Status script(const std::string& sql) override;
  std::int64_t changes() const override { return sqlite3_changes64(db_); }

  Result<SqliteStatement> prepare(const std::string& sql);
  // Runs a statement whose values are bound; it has no rows.
  Status run_bound(SqliteStatement& statement);
  Error error() const;  // the last one
  sqlite3* raw() const { return db_; }

 private:
  explicit SqliteSession(std::string path) : path_(std::move(path)) {}
  Result<SqliteStatement*> cached(const std::string& sql);

  std::string path_;
  sqlite3* db_ = nullptr;
  std::unordered_map<std::string, SqliteStatement> cache_;
};

}  // namespace gs::store
