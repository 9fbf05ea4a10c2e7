#include "net/http.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

TEST(Target, is_taken_apart_and_its_escapes_are_read) {
  HttpRequest request;
  ASSERT_TRUE(parse_target("/a%2Fb/c?x=1+2&y=%C3%A9&z&&=w#rest", request).ok());
  EXPECT_EQ(request.path, "/a/b/c");
  EXPECT_EQ(request.query, (Query{{"x", "1 2"}, {"y", "\u00e9"}, {"z", ""}, {"", "w"}}));
}

TEST(Target, that_is_none_is_refused) {
  for (const std::string_view wrong :
       {std::string_view("a"), std::string_view(""), std::string_view("/%4"),
        std::string_view("/%zz"), std::string_view("/%00"), std::string_view("/a?b=%0"),
        std::string_view("/a?b=%00"), std::string_view("/a\0b", 4), std::string_view("/a?\0", 4)}) {
    HttpRequest request;
    EXPECT_FALSE(parse_target(wrong, request).ok()) << wrong;
  }
}

}  // namespace
}  // namespace gs
