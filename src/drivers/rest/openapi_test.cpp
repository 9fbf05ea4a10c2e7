// The document and the routes say the same.
#include "drivers/rest/openapi.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "drivers/rest/rest.hpp"
#include "wire/json_reader.hpp"

namespace gs {
namespace {

const Json& document() {
  static const Json json = Json::parse(openapi_document());
  return json;
}

std::string upper(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

// Calls visit(method, path, operation).
template <typename Visit>
void for_each_operation(Visit&& visit) {
  for (const auto& [path, item] : document()["paths"].items())
    for (const auto& [word, operation] : item.items())
      if (word != "parameters") visit(upper(word), path, operation);
}

std::set<std::string> parameters_in(const Json& list, const std::string& where) {
  std::set<std::string> names;
  for (const Json& one : list) {
    const Json& parameter =
        one.contains("$ref")
            ? document().at(Json::json_pointer(one["$ref"].get<std::string>().substr(1)))
            : one;
    if (parameter["in"] == where) names.insert(parameter["name"].get<std::string>());
  }
  return names;
}

TEST(OpenApi, document_and_routes_agree) {
  std::set<std::pair<std::string, std::string>> described;
  for_each_operation([&](const std::string& method, const std::string& path, const Json&) {
    described.emplace(method, path);
  });
  const auto list = rest_routes();
  const std::set<std::pair<std::string, std::string>> served(list.begin(), list.end());
  EXPECT_EQ(served.size(), list.size());
  for (const auto& [method, path] : served)
    EXPECT_TRUE(described.contains({method, path})) << method << " " << path << " is not described";
  for (const auto& [method, path] : described)
    EXPECT_TRUE(served.contains({method, path})) << method << " " << path << " is not served";
}

TEST(OpenApi, describes_exactly_the_parameters_of_each_route) {
  for_each_operation([&](const std::string& method, const std::string& path,
                         const Json& operation) {
    const Json none = Json::array();
    const Json& item = document()["paths"][path];
    std::set<std::string> in_path, want;
    if (item.contains("parameters")) in_path = parameters_in(item["parameters"], "path");
    for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1))
      want.insert(path.substr(at + 1, path.find('}', at) - at - 1));
    EXPECT_EQ(in_path, want) << path;
    const auto query =
        parameters_in(operation.contains("parameters") ? operation["parameters"] : none, "query");
    EXPECT_EQ(query, rest_parameters(method, path)) << method << " " << path;
  });
}

TEST(OpenApi, every_operation_has_a_name_of_its_own_a_summary_and_answers) {
  std::set<std::string> names;
  for_each_operation(
      [&](const std::string& method, const std::string& path, const Json& operation) {
        const std::string where = method + " " + path;
        EXPECT_TRUE(names.insert(operation.value("operationId", "")).second) << where;
        EXPECT_FALSE(operation.value("summary", "").empty()) << where;
        const Json& answers = operation["responses"];
        EXPECT_TRUE(answers.contains("200") || answers.contains("201")) << where;
        EXPECT_FALSE(answers.contains("default")) << where;
      });
}

void check_references(const Json& json) {
  if (json.is_object() && json.contains("$ref")) {
    const std::string to = json["$ref"].get<std::string>();
    EXPECT_TRUE(document().contains(Json::json_pointer(to.substr(1)))) << to;
  }
  if (json.is_structured())
    for (const Json& part : json) check_references(part);
}

TEST(OpenApi, every_reference_leads_somewhere) { check_references(document()); }

}  // namespace
}  // namespace gs
