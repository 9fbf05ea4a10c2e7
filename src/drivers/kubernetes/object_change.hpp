// What every follower of a resource asks about a change first.
#pragma once

#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "drivers/kubernetes/reflector.hpp"

namespace gs::kube {

// An object that can't be read is skipped, and said so: it must not stop all the others.
template <typename Decoded>
bool readable(const Result<Decoded>& object, const ObjectChange& change, const char* kind) {
  if (object) return true;
  log_warn("an object could not be read", {{"kind", kind},
                                           {"namespace", std::string(change.name_space)},
                                           {"name", std::string(change.name)},
                                           {"error", object.error().message}});
  return false;
}

inline bool is_end(const ObjectChange& change) {
  return change.kind == ObjectChange::Kind::Deleted;
}

}  // namespace gs::kube
