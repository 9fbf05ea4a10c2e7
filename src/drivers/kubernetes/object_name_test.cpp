#include "drivers/kubernetes/object_name.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "drivers/kubernetes/line_splitter.hpp"

namespace gs::kube {
namespace {

TEST(ObjectName, is_read_from_the_metadata) {
  const auto found = read_object_name(
      R"({"kind":"Pod","spec":{"metadata":{"name":"no"},"x":"}\"]"},)"
      R"("metadata": {"name":"p", "namespace":"ns","labels":{"name":"no"},"uid":"u",)"
      R"("resourceVersion" : "17"} })");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->name, "p");
  EXPECT_EQ(found->ns, "ns");
  EXPECT_EQ(found->uid, "u");
  EXPECT_EQ(found->resource_version, "17");
}

TEST(ObjectName, what_has_none_is_refused) {
  for (const char* text : {"", "{}", "[]", "null", R"({"metadata":3})", R"({"metadata":{"name":)"})
    EXPECT_FALSE(read_object_name(text).ok()) << text;
}

TEST(LineSplitter, finds_lines_wherever_the_pieces_end) {
  const std::string text = "one\n\ntwo\nthree\nrest";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += size)
      EXPECT_TRUE(splitter.feed(std::string_view(text).substr(at, size),
                                [&](std::string_view line) { lines.emplace_back(line); }));
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"})) << size;
  }
  LineSplitter small(4);
  EXPECT_FALSE(small.feed("12345", [](std::string_view) {}));
  EXPECT_FALSE(small.feed("12345\n", [](std::string_view) {}));
}

}  // namespace
}  // namespace gs::kube
