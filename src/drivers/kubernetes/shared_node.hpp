// A node in the engine's words, kept once for all who look at it: there are thousands.
#pragma once

#include <memory>

#include "model/node.hpp"

namespace gs::kube {

using SharedNode = std::shared_ptr<const gs::Node>;  // nothing: there is no such node (any more)

}  // namespace gs::kube
