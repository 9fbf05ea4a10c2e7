#include "drivers/kubernetes/watch_frame.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(WatchFrame, is_read_without_reading_the_object) {
  const auto frame = read_watch_frame(
      R"({"type":"MODIFIED","object":{"kind":"Pod","spec":{"metadata":{"name":"no"},"x":"}\"]"},)"
      R"("metadata": {"name":"p", "namespace":"ns","labels":{"name":"no"},"uid":"u",)"
      R"("resourceVersion" : "17"} } })");
  ASSERT_TRUE(frame.ok()) << frame.error().message;
  EXPECT_EQ(frame->type, WatchFrame::Type::Modified);
  EXPECT_EQ(frame->meta.name, "p");
  EXPECT_EQ(frame->meta.name_space, "ns");
  EXPECT_EQ(frame->meta.uid, "u");
  EXPECT_EQ(frame->meta.resource_version, "17");
  EXPECT_TRUE(frame->object.starts_with(R"({"kind":"Pod")") && frame->object.ends_with("} }"));
}

TEST(WatchFrame, what_is_none_is_refused) {
  for (const char* text :
       {"", "{}", "[]", "null", R"({"type":"ADDED"})", R"({"type":"ADDED","object":{}})",
        R"({"type":"ODD","object":{"metadata":{}}})", R"({"type":"ADDED","object":{"metadata":{}})",
        R"({"type":"ADDED","object":{"metadata":{}}} x)", R"({"type" "ADDED"})", R"({"type":"A)",
        R"({"a":"\)", R"({type:1})", R"({"a":1,})"})
    EXPECT_FALSE(read_watch_frame(text).ok()) << text;
}

TEST(ListPage, has_its_items_and_where_it_goes_on) {
  const auto page =
      read_list_page(R"({"kind":"PodList","metadata":{"resourceVersion":"9","continue":"abc"},)"
                     R"("items":[{"metadata":{"name":"a"}}, {"metadata":{"name":"b"}}]})");
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->next, "abc");
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(read_object_meta(page->items[1])->name, "b");
  EXPECT_TRUE(
      read_list_page(R"({"metadata":{"resourceVersion":"9"},"items":null})")->items.empty());
  EXPECT_TRUE(read_list_page(R"({"metadata":{"resourceVersion":"9"},"items":[]})")->items.empty());
  EXPECT_FALSE(read_list_page(R"({"metadata":{},"items":[]})").ok());
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
}

}  // namespace
}  // namespace gs
