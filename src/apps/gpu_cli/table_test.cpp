#include "apps/gpu_cli/table.hpp"

#include <gtest/gtest.h>

namespace gs::cli {
namespace {

TEST(Table, aligns_texts_to_the_left_and_numbers_to_the_right) {
  Table table({"NAME", ">GPUS", "NODE"});
  table.add({"a", "16", "n1"});
  table.add({"longer", "2", ""});
  EXPECT_EQ(table.text(false),
            "NAME    GPUS  NODE\n"
            "a         16  n1\n"
            "longer     2  -\n");
}

TEST(Table, counts_columns_not_bytes) {
  EXPECT_EQ(display_width("naïve"), 5U);
  EXPECT_EQ(display_width("訓練"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);  // with a combining accent
  Table table({"NAME", "X"});
  table.add({"訓練", "1"});
  table.add({"naïve", "2"});
  EXPECT_EQ(table.text(false),
            "NAME   X\n"
            "訓練   1\n"
            "naïve  2\n");
}

TEST(Table, colours_do_not_move_columns) {
  Table table({"STATE", "X"});
  table.add({Cell("up", Paint::Green), "1"});
  EXPECT_EQ(table.text(true), "\033[1mSTATE\033[0m  \033[1mX\033[0m\n\033[32mup\033[0m     1\n");
}

TEST(Table, what_others_wrote_cannot_steer_the_terminal) {
  EXPECT_EQ(printable("a\033[2Jb"), "a?[2Jb");
  EXPECT_EQ(printable("two\nlines"), "two lines");
  EXPECT_EQ(printable("broken \xFF\xC3"), "broken ??");
  EXPECT_EQ(printable("naïve 訓練"), "naïve 訓練");
  EXPECT_EQ(printable("\u202Etxt"), "?txt");  // turns the direction of writing
}

TEST(Table, long_texts_are_cut_between_characters) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "long…");
  EXPECT_EQ(shortened("訓練訓練", 6), "訓練…");
}

}  // namespace
}  // namespace gs::cli
