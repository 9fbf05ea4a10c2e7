#include "drivers/kubernetes/list_all.hpp"

#include <utility>

namespace gs {

void list_all(Api& api, ApiRequest request, std::function<void(const ListPage&)> page,
              std::function<void(std::optional<ApiError>)> done) {
  ApiRequest first = request;
  api.call(std::move(first), [&api, request = std::move(request), page = std::move(page),
                              done = std::move(done)](const ApiAnswer& answer) mutable {
    if (!answer.ok()) return done(answer.error);
    const auto found = read_list_page(answer.body);
    if (!found) {
      ApiError error;
      error.code = answer.code;
      error.message = found.error().message;
      return done(std::move(error));
    }
    page(*found);
    if (found->next.empty()) return done(std::nullopt);
    std::erase_if(request.query, [](const auto& pair) { return pair.first == "continue"; });
    request.query.emplace_back("continue", found->next);
    list_all(api, std::move(request), std::move(page), std::move(done));
  });
}

}  // namespace gs
