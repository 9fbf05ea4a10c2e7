// PostgreSQL as a Session: one connection, made when it is needed and again after it was lost.
// After a failure it waits a little, and longer each time, before the next attempt; calls in
// between fail at once. Nothing blocks longer than the settings say.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "drivers/store/libpq.hpp"
#include "drivers/store/open.hpp"
#include "drivers/store/session.hpp"

namespace gs::store {

// Bytes that PostgreSQL would refuse in a text (no UTF-8, or zero) as '?'.
std::string valid_text(std::string_view text);

// A statement of a pipeline: a prepared one, its values in binary form.
struct Prepared {
  std::string name;
  std::vector<std::string> values;
};

class PostgresSession final : public Session {
 public:
  explicit PostgresSession(PostgresSettings settings, bool read_only = false)
      : settings_(std::move(settings)), read_only_(read_only) {}
  PostgresSession(const PostgresSession&) = delete;
  PostgresSession& operator=(const PostgresSession&) = delete;
  ~PostgresSession() override { disconnect(); }

  // Called on each new connection before anything else is.
  void on_connect(std::function<Status(PostgresSession&)> prepare) {
    prepare_ = std::move(prepare);
  }
  Status connect();  // if it is not
  void disconnect();
  bool is_connected() const { return connection_ != nullptr; }
  int backend_pid() const;

  Dialect dialect() const override { return Dialect::Postgres; }
  Status query(const std::string& sql, const std::vector<Value>& values,
               const std::function<void(const Row&)>& each) override;
  Status script(const std::string& sql) override;
  std::int64_t changes() const override { return changes_; }

  Status prepare(const std::string& name, const std::string& sql, const std::vector<Oid>& types);
  // BEGIN, the statements, COMMIT: in one round trip, all or nothing. With `sql_state` an error's
  // code. Unavailable: it is not known whether it happened.
  Status run_pipeline(const std::vector<Prepared>& statements, std::string& sql_state);

 private:
  struct Clear {
    const Libpq* pq;
    void operator()(PGresult* result) const { pq->clear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  Status connect_now();
  Status query_once(const std::string& sql, const std::vector<Value>& values,
                    const std::function<void(const Row&)>& each);
  Status lost(const std::string& what);
  Error error_of(const PGresult* result) const;
  Status send_all(std::chrono::steady_clock::time_point deadline);
  // Empty: that was the last one of a statement.
  Result<Answer> next_answer(std::chrono::steady_clock::time_point deadline);
  Status wait(short events, std::chrono::steady_clock::time_point deadline);
  std::chrono::steady_clock::time_point deadline() const;
  Status read_answers(std::string& sql_state);

  PostgresSettings settings_;
  bool read_only_;
  const Libpq* pq_ = nullptr;
  PGconn* connection_ = nullptr;
  std::function<Status(PostgresSession&)> prepare_;
  std::int64_t changes_ = 0;
  int failures_ = 0;
  std::string last_failure_;
  std::chrono::steady_clock::time_point next_attempt_{};
};

}  // namespace gs::store
