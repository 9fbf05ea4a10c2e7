// The API's own description (api/openapi.yaml), as JSON.
#pragma once

#include <string>

namespace gs {

const std::string& openapi_document();

}  // namespace gs
