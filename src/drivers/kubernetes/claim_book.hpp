// GpuClaims by name, as the API server last told them. One that is not in the book is read: it may
// have been created a moment ago.
//
// find() may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/reflector.hpp"
#include "wire/kube/claim.hpp"

namespace gs::kube {

class ClaimBook {
 public:
  // Nothing: there is no such claim. Called once, at once or on the Api's loop.
  using Found = std::function<void(Result<std::optional<GpuClaim>>)>;

  // `patience`: of reading a claim that is not in the book.
  ClaimBook(Api& api, Duration patience);

  void start() { reflector_.start(); }
  void stop() { reflector_.stop(); }
  void find(const std::string& name_space, const std::string& name, Found found);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  struct Known {
    std::mutex mutex;
    std::map<Key, GpuClaim> claims;

    void change(const ObjectChange& change);
  };

  Api& api_;
  const Duration patience_;
  const std::shared_ptr<Known> known_;  // shared with the loop, which may be in the middle of it
  Reflector reflector_;
};

}  // namespace gs::kube
