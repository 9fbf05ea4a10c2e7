// Rows for PostgreSQL: a batch of any size is one statement whose parameters are columns, each an
// array in the server's own binary form. So a turn is one round trip and few statements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/store/libpq.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {

// A sink for rows, see tables.hpp; the values of each row in the order of the columns.
class ColumnArrays {
 public:
  explicit ColumnArrays(std::span<const Column> columns);

  void integer(std::int64_t value);
  void real(double value);
  void null();
  void text(std::string_view value);
  void own_text(const std::string& value) { text(value); }

  std::size_t rows() const { return rows_; }
  std::vector<std::string> finish();  // one parameter a column

 private:
  std::string& next();

  std::span<const Column> columns_;
  std::vector<std::string> arrays_;
  std::vector<bool> has_null_;
  std::size_t column_ = 0;
  std::size_t rows_ = 0;
};

std::string binary_integer(std::int64_t value);
std::vector<Oid> array_types(std::span<const Column> columns);

// "INSERT INTO table (...) SELECT ... FROM unnest($1, ...)"
std::string insert_arrays(const char* table, std::span<const Column> columns);
// The same; a row that is there already gets the new values.
std::string put_arrays(const char* table, std::span<const Column> columns, const char* key);
// The first column says which row, the others are set.
std::string update_arrays(const char* table, std::span<const Column> columns);

}  // namespace gs::store
