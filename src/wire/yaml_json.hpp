// A YAML document as JSON.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "wire/json_reader.hpp"

namespace gs {

Result<Json> yaml_to_json(std::string_view yaml);

}  // namespace gs
