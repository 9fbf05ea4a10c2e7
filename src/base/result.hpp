// Result<T>: the value, or an Error that a person can act on. No exceptions cross a layer.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace gs {

// One code per way a caller reacts; drivers map it to HTTP, gRPC and exit codes in one table.
enum class ErrorCode {
  InvalidArgument,
  NotFound,
  AlreadyExists,
  QuotaExceeded,
  QueueFull,
  Conflict,
  Unauthenticated,   // says not who it is, or says it wrongly
  PermissionDenied,  // is known and may not do this
  Unavailable,
  Internal
};

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
};

inline Error invalid(std::string message) {
  return {ErrorCode::InvalidArgument, std::move(message)};
}
inline Error not_found(std::string message) { return {ErrorCode::NotFound, std::move(message)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() {
    CHECK_MSG(ok(), error_text());
    return std::get<0>(state_);
  }
  const T& value() const {
    CHECK_MSG(ok(), error_text());
    return std::get<0>(state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::string error_text() const { return ok() ? std::string{} : std::get<1>(state_).message; }
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;
inline Status ok_status() { return Done{}; }

}  // namespace gs
