// A page of jobs. Every filter and every order has an index; which one leads is decided by how many
// rows each filter lets through, counted up to a bound. Three ways to a page:
//  - along an index that answers a filter and has the wanted order;
//  - along the index of the order, looking at the filters on the way: for a few thousand rows,
//  which
//    is enough unless what is looked for is rare there;
//  - all rows of the filter that lets the fewest through, sorted; or if these are too many, along
//    the order to its end.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "drivers/store/session.hpp"
#include "service/store.hpp"

namespace gs::store {

Result<JobPage> list_jobs(Session& session, const JobQuery& query);

// The statements that list_jobs() runs for this query, for tests that look at their plans.
Result<std::vector<std::string>> list_statements(Session& session, const JobQuery& query);

// "INDEXED BY name" where the dialect has it.
std::string indexed_by(Dialect dialect, const char* index);

// Text that begins with `prefix` lies from there up to this.
std::string end_of_prefix(const std::string& prefix);

}  // namespace gs::store
