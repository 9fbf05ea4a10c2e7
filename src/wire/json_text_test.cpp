#include "wire/json_text.hpp"

#include <gtest/gtest.h>

#include "wire/json_reader.hpp"

namespace gs {
namespace {

TEST(JsonText, sets_commas_between_values_only) {
  JsonText out;
  out.open('{').field("a", 1).key("list").open('[').value("x").value(true).raw("null").close(']');
  out.key("empty").open('{').close('}').field("b", false).close('}');
  EXPECT_EQ(out.take(), R"({"a":1,"list":["x",true,null],"empty":{},"b":false})");
}

TEST(JsonText, writes_every_character_so_that_it_is_read_again) {
  std::string all = "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80 \x7f";
  for (char c = 1; c < 0x7f; ++c) all += c;
  const std::vector<std::string> list{all, "", "plain"};
  const std::vector<std::pair<std::string, std::string>> pairs{{all, "v"}, {"k", all}};
  JsonText out;
  out.open('{').field("list", list).field("pairs", pairs).field("least", INT64_MIN).close('}');
  const Result<Json> back = parse_json(out.take());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ((*back)["list"], Json(list));
  EXPECT_EQ((*back)["pairs"], (Json{{all, "v"}, {"k", all}}));
  EXPECT_EQ((*back)["least"], INT64_MIN);
}

TEST(JsonText, escapes_as_others_do) {
  const std::string text = "\"\\\b\f\n\r\t\x01\x1f/";
  EXPECT_EQ(JsonText().value(text).take(), Json(text).dump());
}

}  // namespace
}  // namespace gs
