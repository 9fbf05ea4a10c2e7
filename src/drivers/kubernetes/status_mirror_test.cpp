#include "drivers/kubernetes/status_mirror.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

constexpr Instant kNow{1'000'000};

TEST(StatusMirror, expects_what_was_told_until_it_had_time_to_arrive) {
  StatusMirror<std::string> mirror;
  EXPECT_FALSE(mirror.is_known());
  mirror.seen("u", "old");
  EXPECT_EQ(mirror.expected(kNow), "old");
  mirror.tell("new", kNow);
  mirror.seen("u", "old");  // an answer from before
  EXPECT_EQ(mirror.expected(kNow + seconds(1)), "new");
  EXPECT_EQ(mirror.look_again(), kNow + seconds(5));
  EXPECT_EQ(mirror.expected(kNow + seconds(5)), "old") << "it never came";
  mirror.seen("u", "new");
  EXPECT_FALSE(mirror.look_again());
  mirror.seen("u", "somebody else's");
  EXPECT_EQ(mirror.expected(kNow + seconds(6)), "somebody else's");
}

TEST(StatusMirror, another_object_of_the_name_has_heard_nothing) {
  StatusMirror<std::string> mirror;
  mirror.seen("u", "old");
  mirror.tell("new", kNow);
  mirror.seen("v", "");
  EXPECT_EQ(mirror.expected(kNow), "");
  mirror.forget();
  EXPECT_FALSE(mirror.is_known());
}

}  // namespace
}  // namespace gs::kube
