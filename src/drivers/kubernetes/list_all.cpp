#include "drivers/kubernetes/list_all.hpp"

#include <utility>

#include "wire/kube/meta.hpp"

namespace gs::kube {

void list_all(Api& api, ApiRequest request, std::function<void(std::string_view)> item,
              std::function<void(std::optional<ApiError>)> done) {
  ApiRequest first = request;
  api.call(std::move(first), [&api, request = std::move(request), item = std::move(item),
                              done = std::move(done)](const ApiAnswer& answer) mutable {
    if (!answer.ok()) return done(answer.error);
    auto found = decode_list(answer.body, item);
    if (!found) {
      ApiError error;
      error.code = answer.code;
      error.message = found.error().message;
      return done(std::move(error));
    }
    if (found->continue_token.empty()) return done(std::nullopt);
    std::erase_if(request.query, [](const auto& pair) { return pair.first == "continue"; });
    request.query.emplace_back("continue", std::move(found->continue_token));
    list_all(api, std::move(request), std::move(item), std::move(done));
  });
}

}  // namespace gs::kube
