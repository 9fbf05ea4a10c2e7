#include "net/frame_stream.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

TEST(TextFrames, are_one_for_each_line_that_says_something) {
  EXPECT_EQ(text_frames(""), "");
  EXPECT_EQ(text_frames("ab\n\nc"),
            "\x81\x02"
            "ab\x81\x01"
            "c");
  EXPECT_EQ(text_frames("ab\n"),
            "\x81\x02"
            "ab");
}

TEST(TextFrames, say_their_length_in_as_many_bytes_as_it_takes) {
  const auto head = [](std::size_t size) {
    const std::string frame = text_frames(std::string(size, 'x'));
    EXPECT_EQ(frame.substr(frame.size() - size), std::string(size, 'x'));
    return frame.substr(0, frame.size() - size);
  };
  using namespace std::string_literals;
  EXPECT_EQ(head(125), "\x81\x7d"s);
  EXPECT_EQ(head(126), "\x81\x7e\x00\x7e"s);
  EXPECT_EQ(head(65'535), "\x81\x7e\xff\xff"s);
  EXPECT_EQ(head(65'536), "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"s);
}

}  // namespace
}  // namespace gs
