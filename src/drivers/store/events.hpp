// Events in the order in which they happened, by job, tenant or type.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "drivers/store/session.hpp"
#include "service/store.hpp"

namespace gs::store {

Result<std::vector<EventRow>> list_events(Session& session, const EventQuery& query);

}  // namespace gs::store
