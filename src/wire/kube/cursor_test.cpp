#include "wire/kube/cursor.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

struct Thing {
  std::string name = "old";
  int count = 7;
  bool on = false;
  std::vector<std::string> words;
  Labels labels;
  std::vector<int> sizes;
  std::string raw;
};

std::string read(std::string_view text, Thing& thing) {
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "name") in.read(thing.name);
    if (field == "count") in.read(thing.count);
    if (field == "on") in.read(thing.on);
    if (field == "words") in.read(thing.words);
    if (field == "labels") in.read(thing.labels);
    if (field == "raw") thing.raw = in.raw();
    if (field == "parts")
      in.array([&] {
        in.object([&](std::string_view inner) {
          if (inner == "size") in.read(thing.sizes.emplace_back());
        });
      });
  });
  const Status status = in.finish();
  return status ? "" : status.error().message;
}

std::string error_of(std::string_view text) {
  Thing thing;
  return read(text, thing);
}

TEST(Cursor, reads_what_is_asked_for_and_steps_over_the_rest) {
  Thing thing;
  EXPECT_EQ(read(R"( {"other":{"deep":[1,{"x":"}"},"\"]"],"n":-1.5e+3,"t":true},"name":"a\tb\u00e9
\ud83d\ude00", "count":-3,"on":true,"words":[],"words":["x" , "y"],"labels":{"b":"2","a":"1","b":"3"},
 "parts":[{"size":3},{"more":[[]]},{"size":4}],"raw": {"k": [1, 2]} ,"last":null} )",
                 thing)
                .substr(0, 14),
            "not valid JSON");  // a raw newline inside a string
  thing = {};
  EXPECT_EQ(read(R"( {"other":{"deep":[1,{"x":"}"},"\"]"],"n":-1.5e+3,"t":true},
 "name":"a\tb\u00e9\ud83d\ude00", "count":-3,"on":true,"words":["x" , "y"],
 "labels":{"b":"2","a":"1","b":"3"},
 "parts":[{"size":3},{"more":[[]]},{"size":4}],"raw": {"k": [1, 2]} ,"last":null} )",
                 thing),
            "");
  EXPECT_EQ(thing.name, "a\tb\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(thing.count, -3);
  EXPECT_TRUE(thing.on);
  EXPECT_EQ(thing.words, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(thing.labels, (Labels{{"a", "1"}, {"b", "3"}}));
  EXPECT_EQ(thing.sizes, (std::vector<int>{3, 4}));
  EXPECT_EQ(thing.raw, R"({"k": [1, 2]})");
}

TEST(Cursor, null_is_not_given) {
  Thing thing;
  EXPECT_EQ(read(R"({"name":null,"count":null,"on":null,"words":null,"labels":null,"parts":null})",
                 thing),
            "");
  EXPECT_EQ(thing.name, "old");
  EXPECT_EQ(thing.count, 7);
}

TEST(Cursor, names_the_place_of_an_error) {
  EXPECT_EQ(error_of(R"({"name":3})"), "name must be a string, got a number");
  EXPECT_EQ(error_of(R"({"count":"3"})"), "count must be a whole number, got a string");
  EXPECT_EQ(error_of(R"({"count":1.5})"), "count must be a whole number");
  EXPECT_EQ(error_of(R"({"count":3000000000})"), "count is out of range");
  EXPECT_EQ(error_of(R"({"words":["x",{}]})"), "words[1] must be a string, got an object");
  EXPECT_EQ(error_of(R"({"labels":{"k":2}})"), "labels.k must be a string, got a number");
  EXPECT_EQ(error_of(R"({"parts":[{"size":1},{"size":true}]})"),
            "parts[1].size must be a whole number, got a boolean");
  EXPECT_EQ(error_of(R"({"parts":{}})"), "parts must be a list, got an object");
  EXPECT_EQ(error_of("[]"), "the object must be an object, got a list");
}

TEST(Cursor, refuses_what_is_no_json) {
  for (const char* text :
       {"", "{", "{]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":[1,]}", "{\"a\":[1 2]}", "{} x",
        "{\"a\":tru}", "{\"a\":01}", "{\"a\":\"x}", "{\"name\":\"\\u12\"}",
        "{\"name\":\"\\u0000\"}", "{\"name\":\"\\ud800\"}", "{\"name\":\"\\q\"}", "{\"count\":-}",
        "{\"on\":trux}", "nul"})
    EXPECT_NE(error_of(text), "") << text;
  const std::string deep = R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_NE(error_of(deep).find("more than 64 levels"), std::string::npos);
}

}  // namespace
}  // namespace gs::kube
