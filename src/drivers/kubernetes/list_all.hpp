// A list to its end, page after page.
#pragma once

#include <functional>
#include <optional>

#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/watch_frame.hpp"

namespace gs {

// `page` gets each page (its views are good during the call), `done` an error or none. Expired: it
// took too long and must begin again.
void list_all(Api& api, ApiRequest request, std::function<void(const ListPage&)> page,
              std::function<void(std::optional<ApiError>)> done);

}  // namespace gs
