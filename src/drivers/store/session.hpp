// Session: one connection to a database that speaks SQL, as far as the code that is the same for
// all of them needs it. Parameters are written $1, $2, ... and first appear in this order, which
// both databases understand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace gs::store {

enum class Dialect { Sqlite, Postgres };

using Value = std::variant<std::int64_t, double, std::string>;

// One row of an answer; texts live until the next row.
class Row {
 public:
  virtual ~Row() = default;
  virtual bool is_null(int column) const = 0;
  virtual std::int64_t integer(int column) const = 0;  // of a boolean: 0 or 1
  virtual double real(int column) const = 0;
  virtual std::string_view text(int column) const = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual Dialect dialect() const = 0;
  virtual Status query(const std::string& sql, const std::vector<Value>& values,
                       const std::function<void(const Row&)>& each) = 0;
  // Statements without parameters or answers, separated by semicolons.
  virtual Status script(const std::string& sql) = 0;
  // How many rows the last query() deleted or changed.
  virtual std::int64_t changes() const = 0;

  Status run(const std::string& sql, const std::vector<Value>& values = {}) {
    return query(sql, values, [](const Row&) {});
  }
};

// The rows of an answer as values; `read` may refuse one.
template <typename T>
Result<std::vector<T>> select(Session& session, const std::string& sql,
                              const std::vector<Value>& values,
                              Status (*read)(const Row& row, T& out)) {
  std::vector<T> found;
  Status refused = ok_status();
  const Status status = session.query(sql, values, [&](const Row& row) {
    if (!refused) return;
    refused = read(row, found.emplace_back());
  });
  if (!status) return status.error();
  if (!refused) return refused.error();
  return found;
}

// The first number of the first row; 0 where there is none.
inline Result<std::int64_t> select_number(Session& session, const std::string& sql,
                                          const std::vector<Value>& values = {}) {
  std::int64_t number = 0;
  const Status status =
      session.query(sql, values, [&](const Row& row) { number = row.integer(0); });
  if (!status) return status.error();
  return number;
}

}  // namespace gs::store
