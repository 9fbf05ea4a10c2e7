#include "drivers/rest/openapi.hpp"

#include <openapi_yaml.hpp>

#include "base/check.hpp"
#include "wire/yaml_json.hpp"

namespace gs {

const std::string& openapi_document() {
  static const std::string document = [] {
    Result<Json> json = yaml_to_json(kOpenApiYaml);
    CHECK_MSG(json.ok(), "api/openapi.yaml is broken");
    return json->dump(2);
  }();
  return document;
}

}  // namespace gs
