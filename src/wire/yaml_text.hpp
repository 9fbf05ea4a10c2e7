// JSON values as YAML text that reads back as the same values.
#pragma once

#include <string>

#include "wire/json_reader.hpp"

namespace gs {

std::string yaml_text(const Json& value);

}  // namespace gs
