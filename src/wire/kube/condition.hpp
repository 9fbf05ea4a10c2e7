// One of the conditions in an object's status.
#pragma once

#include <string>

#include "wire/kube/cursor.hpp"

namespace gs::kube {

struct Condition {
  std::string type, status, reason, message;
};

inline Condition read_condition(Cursor& in) {
  Condition condition;
  in.object([&](std::string_view field) {
    if (field == "type") in.read(condition.type);
    if (field == "status") in.read(condition.status);
    if (field == "reason") in.read(condition.reason);
    if (field == "message") in.read(condition.message);
  });
  return condition;
}

}  // namespace gs::kube
