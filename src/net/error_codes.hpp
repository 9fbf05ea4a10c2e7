// How an Error looks from outside: one table for HTTP, gRPC and the exit codes of the CLI.
#pragma once

#include "base/result.hpp"

namespace gs {

struct OutsideCode {
  int http = 500;
  int grpc = 13;  // grpc::StatusCode
  int exit = 1;
};

constexpr OutsideCode outside_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return {400, 3, 2};
    case ErrorCode::Unauthenticated:
      return {401, 16, 6};
    case ErrorCode::PermissionDenied:
      return {403, 7, 6};
    case ErrorCode::NotFound:
      return {404, 5, 3};
    case ErrorCode::AlreadyExists:
      return {409, 6, 4};
    case ErrorCode::Conflict:
      return {409, 9, 4};
    case ErrorCode::QuotaExceeded:
      return {422, 8, 5};
    case ErrorCode::QueueFull:
      return {429, 8, 7};
    case ErrorCode::Unavailable:
      return {503, 14, 7};
    case ErrorCode::Internal:
      return {500, 13, 1};
  }
  return {};
}

// What a client makes of a status that says no.
constexpr ErrorCode error_code_of_http(int status) {
  switch (status) {
    case 401:
      return ErrorCode::Unauthenticated;
    case 403:
      return ErrorCode::PermissionDenied;
    case 404:
      return ErrorCode::NotFound;
    case 409:
      return ErrorCode::Conflict;
    case 422:
      return ErrorCode::QuotaExceeded;
    case 429:
      return ErrorCode::QueueFull;
    case 502:
    case 503:
    case 504:
      return ErrorCode::Unavailable;
    default:
      return status >= 400 && status < 500 ? ErrorCode::InvalidArgument : ErrorCode::Internal;
  }
}

}  // namespace gs
