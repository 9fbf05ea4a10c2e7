// Who an object is: all that is read of it before somebody wants the whole.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace gs::kube {

// Views into the object's text, as they are written there.
struct ObjectName {
  std::string_view name, ns, uid, resource_version;
};

Result<ObjectName> read_object_name(std::string_view object);

}  // namespace gs::kube
