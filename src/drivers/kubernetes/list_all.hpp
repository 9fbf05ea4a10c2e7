// A list to its end, page after page.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "drivers/kubernetes/api.hpp"

namespace gs::kube {

// `item` gets the text of each object, `done` an error or none. Expired: it took too long and must
// begin again.
void list_all(Api& api, ApiRequest request, std::function<void(std::string_view)> item,
              std::function<void(std::optional<ApiError>)> done);

}  // namespace gs::kube
