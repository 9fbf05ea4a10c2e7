// Authenticator: who is this? From an API key, a JSON Web Token or the agents' token.
//
// Safe to use from many threads, also while reload() runs: every call sees the credentials of
// before or of after.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "model/settings.hpp"
#include "service/access.hpp"

namespace gs {

class Authenticator {
 public:
  // Reads the files that the settings name. Where nobody has to log in (auth_required) everybody is
  // the local admin, and no file is read.
  static Result<std::unique_ptr<Authenticator>> open(const Settings& settings);
  ~Authenticator();

  // Reads the files again. What can't be read or is wrong changes nothing.
  Status reload(const Settings& settings);

  // The values of the headers `Authorization` and `X-API-Key`; empty: not sent. A key may come in
  // either ("Bearer KEY"). Unauthenticated, with the reason, for whoever is nobody we know.
  Result<Caller> identify(std::string_view authorization, std::string_view api_key,
                          Instant now) const;

 private:
  struct Credentials;
  explicit Authenticator(std::shared_ptr<const Credentials> credentials);
  static Result<std::shared_ptr<const Credentials>> read(const Settings& settings);

  mutable std::mutex mutex_;  // of the pointer alone
  std::shared_ptr<const Credentials> credentials_;
};

}  // namespace gs
