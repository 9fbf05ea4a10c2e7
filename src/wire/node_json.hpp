// Node <-> JSON; the fields are called as the members are. Decoding validates.
#pragma once

#include "base/result.hpp"
#include "model/node.hpp"
#include "wire/json_reader.hpp"

namespace gs {

Json node_json(const Node& node);
Result<Node> read_node(const Json& json);

}  // namespace gs
