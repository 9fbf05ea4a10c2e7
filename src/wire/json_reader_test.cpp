#include "wire/json_reader.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

enum class Colour { Red, Green };

struct Thing {
  std::string name;
  int count = 7;
  std::int64_t big = 0;
  double share = 0.5;
  bool on = false;
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> labels;
  Colour colour = Colour::Red;
  std::vector<int> parts;
};

std::string read(std::string_view text, Thing& thing) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error().message;
  ObjectReader in(*json);
  in.required("name", thing.name);
  in.optional("count", thing.count);
  in.optional("big", thing.big);
  in.optional("share", thing.share);
  in.optional("on", thing.on);
  in.optional("words", thing.words);
  in.optional("labels", thing.labels);
  const std::pair<const char*, Colour> colours[] = {{"red", Colour::Red}, {"green", Colour::Green}};
  in.one_of("colour", thing.colour, colours);
  in.array("parts", [&](ObjectReader& part) {
    int size = 0;
    part.required("size", size);
    part.object("inner", [&](ObjectReader& inner) { inner.optional("deep", size); });
    thing.parts.push_back(size);
  });
  const Status status = in.finish();
  return status ? "" : status.error().message;
}

std::string error_of(std::string_view text) {
  Thing thing;
  return read(text, thing);
}

TEST(JsonReader, reads_what_is_given_and_leaves_the_rest) {
  Thing thing;
  EXPECT_EQ(read(R"({"name":"a","big":-5,"share":1,"on":true,"words":["x","y"],
                     "labels":{"b":"2","a":"1"},"colour":"green","parts":[{"size":3},
                     {"size":4,"inner":{"deep":5}}],"count":null})",
                 thing),
            "");
  EXPECT_EQ(thing.name, "a");
  EXPECT_EQ(thing.count, 7);
  EXPECT_EQ(thing.big, -5);
  EXPECT_EQ(thing.share, 1.0);
  EXPECT_TRUE(thing.on);
  EXPECT_EQ(thing.words, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(thing.labels.front().first, "a");
  EXPECT_EQ(thing.colour, Colour::Green);
  EXPECT_EQ(thing.parts, (std::vector<int>{3, 5}));
}

TEST(JsonReader, names_the_field_in_every_error) {
  EXPECT_EQ(error_of("{}"), "name is required");
  EXPECT_EQ(error_of(R"({"name":null})"), "name is required");
  EXPECT_EQ(error_of(R"({"name":3})"), "name must be a string, got number");
  EXPECT_EQ(error_of(R"({"name":"a","count":"3"})"), "count must be a whole number, got string");
  EXPECT_EQ(error_of(R"({"name":"a","count":1.5})"),
            "count must be a whole number, got a fraction");
  EXPECT_EQ(error_of(R"({"name":"a","count":3000000000})"), "count is out of range");
  EXPECT_EQ(error_of(R"({"name":"a","big":18446744073709551615})"), "big is out of range");
  EXPECT_EQ(error_of(R"({"name":"a","on":1})"), "on must be true or false, got number");
  EXPECT_EQ(error_of(R"({"name":"a","words":["x",2]})"), "words[1] must be a string");
  EXPECT_EQ(error_of(R"({"name":"a","labels":{"k":2}})"), "labels.k must be a string");
  EXPECT_EQ(error_of(R"({"name":"a","parts":[{"size":1},{}]})"), "parts[1].size is required");
  EXPECT_EQ(error_of(R"({"name":"a","parts":[3]})"), "parts[0] must be an object, got number");
  EXPECT_EQ(error_of(R"({"name":"a","parts":{}})"), "parts must be a list, got object");
  EXPECT_EQ(error_of(R"({"name":"a","parts":[{"size":1,"inner":{"deep":"x"}}]})"),
            "parts[0].inner.deep must be a whole number, got string");
  EXPECT_EQ(error_of(R"({"name":"a","colour":"blue"})"),
            "colour must be one of red, green; got 'blue'");
  EXPECT_EQ(error_of("[]"), "the body must be an object, got array");
}

TEST(JsonReader, refuses_unknown_fields_with_what_was_probably_meant) {
  EXPECT_EQ(error_of(R"({"name":"a","cuont":3})"), "unknown field 'cuont'; did you mean 'count'?");
  EXPECT_EQ(error_of(R"({"name":"a","zzzzzzzz":3})"), "unknown field 'zzzzzzzz'");
  EXPECT_EQ(error_of(R"({"name":"a","parts":[{"size":1,"siz":2}]})"),
            "unknown field 'parts[0].siz'; did you mean 'size'?");
}

TEST(JsonReader, refuses_what_is_no_strict_json) {
  EXPECT_EQ(error_of(R"({"name":"a","name":"b"})"), "not valid JSON: field 'name' is given twice");
  EXPECT_EQ(error_of(R"({"name":"a\u0000b"})"),
            "not valid JSON: the character U+0000 is not allowed");
  EXPECT_EQ(error_of(R"({"name":"a"} x)").rfind("not valid JSON: parse error at line 1", 0), 0U);
  EXPECT_EQ(error_of("").rfind("not valid JSON: parse error", 0), 0U);
  EXPECT_EQ(error_of("{\"name\":\"\xff\"}").rfind("not valid JSON: parse error", 0), 0U);
  EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')),
            "not valid JSON: more than 64 levels");
}

}  // namespace
}  // namespace gs
