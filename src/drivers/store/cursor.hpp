// Cursor: where a page of a list ended. It holds the sort key and the number of the last row, so
// that pages neither skip nor repeat a row while others come and go. Opaque to users, and checked:
// what we did not write for this order is refused.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "service/store.hpp"

namespace gs::store {

struct Cursor {
  JobSort sort = JobSort::Submitted;
  bool descending = true;
  std::int64_t seq = 0;
  std::string key;  // the priority or the name
};

std::string encode(const Cursor& cursor);
// InvalidArgument where it is not one, or one of another order than the query's.
Result<Cursor> decode_cursor(const std::string& text, JobSort sort, bool descending);

}  // namespace gs::store
