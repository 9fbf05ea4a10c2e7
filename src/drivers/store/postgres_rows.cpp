#include "drivers/store/postgres_rows.hpp"

#include <bit>

#include "base/check.hpp"
#include "drivers/store/postgres.hpp"

namespace gs::store {
namespace {

constexpr Oid kInt8 = 20, kText = 25, kFloat8 = 701;
constexpr Oid kInt8Array = 1016, kTextArray = 1009, kFloat8Array = 1022;

Oid element_type(Kind kind) {
  switch (kind) {
    case Kind::Text:
    case Kind::State:
      return kText;
    case Kind::Real:
      return kFloat8;
    default:
      return kInt8;
  }
}

template <typename Unsigned>
void append_big_endian(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift);
}
void append_int4(std::string& out, std::uint32_t value) { append_big_endian(out, value); }

// The element of the arrays as the column has it.
std::string as_column(const Column& column, std::size_t number) {
  std::string value = "u.c" + std::to_string(number);
  switch (column.kind) {
    case Kind::Small:
      return value + "::int4";
    case Kind::Bool:
      return value + "::int4::bool";
    case Kind::State:
      return value + "::job_state";
    default:
      return value;
  }
}

std::string unnest(std::span<const Column> columns) {
  std::string parameters, names;
  for (std::size_t i = 1; i <= columns.size(); ++i) {
    parameters += (i == 1 ? "$" : ", $") + std::to_string(i);
    names += (i == 1 ? "c" : ", c") + std::to_string(i);
  }
  return "unnest(" + parameters + ") AS u(" + names + ")";
}

}  // namespace

ColumnArrays::ColumnArrays(std::span<const Column> columns)
    : columns_(columns), arrays_(columns.size()), has_null_(columns.size(), false) {}

std::string& ColumnArrays::next() {
  std::string& array = arrays_[column_];
  if (++column_ == columns_.size()) {
    column_ = 0;
    ++rows_;
  }
  return array;
}

void ColumnArrays::integer(std::int64_t value) {
  std::string& array = next();
  append_int4(array, 8);
  append_big_endian(array, static_cast<std::uint64_t>(value));
}

void ColumnArrays::real(double value) {
  std::string& array = next();
  append_int4(array, 8);
  append_big_endian(array, std::bit_cast<std::uint64_t>(value));
}

void ColumnArrays::null() {
  has_null_[column_] = true;
  append_int4(next(), 0xffff'ffffU);
}

void ColumnArrays::text(std::string_view value) {
  const std::string valid = valid_text(value);
  std::string& array = next();
  append_int4(array, static_cast<std::uint32_t>(valid.size()));
  array += valid;
}

std::vector<std::string> ColumnArrays::finish() {
  CHECK(column_ == 0 && rows_ > 0);
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::string parameter;
    parameter.reserve(arrays_[i].size() + 20);
    append_int4(parameter, 1);  // dimensions
    append_int4(parameter, has_null_[i] ? 1 : 0);
    append_int4(parameter, element_type(columns_[i].kind));
    append_int4(parameter, static_cast<std::uint32_t>(rows_));
    append_int4(parameter, 1);  // the first index
    parameters.push_back(std::move(parameter.append(arrays_[i])));
  }
  return parameters;
}

std::string binary_integer(std::int64_t value) {
  std::string bytes;
  append_big_endian(bytes, static_cast<std::uint64_t>(value));
  return bytes;
}

std::vector<Oid> array_types(std::span<const Column> columns) {
  std::vector<Oid> types;
  for (const Column& column : columns) {
    const Oid element = element_type(column.kind);
    types.push_back(element == kText ? kTextArray : element == kFloat8 ? kFloat8Array : kInt8Array);
  }
  return types;
}

std::string insert_arrays(const char* table, std::span<const Column> columns) {
  std::string values;
  for (std::size_t i = 0; i < columns.size(); ++i)
    values += (i == 0 ? "" : ", ") + as_column(columns[i], i + 1);
  return std::string("INSERT INTO ") + table + " (" + names_of(columns) + ") SELECT " + values +
         " FROM " + unnest(columns);
}

std::string put_arrays(const char* table, std::span<const Column> columns, const char* key) {
  std::string set;
  for (const Column& column : columns)
    set += std::string(set.empty() ? "" : ", ") + column.name + " = excluded." + column.name;
  return insert_arrays(table, columns) + " ON CONFLICT (" + key + ") DO UPDATE SET " + set;
}

std::string update_arrays(const char* table, std::span<const Column> columns) {
  std::string set;
  for (std::size_t i = 1; i < columns.size(); ++i)
    set += std::string(i == 1 ? "" : ", ") + columns[i].name + " = " + as_column(columns[i], i + 1);
  return std::string("UPDATE ") + table + " AS t SET " + set + " FROM " + unnest(columns) +
         " WHERE t." + columns[0].name + " = u.c1";
}

}  // namespace gs::store
