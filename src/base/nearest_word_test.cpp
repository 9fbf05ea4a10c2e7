#include "base/nearest_word.hpp"

#include <string>

#include <gtest/gtest.h>

namespace gs {
namespace {

const std::vector<std::string> kCommands{"run", "conformance", "openb", "topo", "faults"};

TEST(NearestWord, TyposAndBeginningsAreNear) {
  EXPECT_EQ(nearest_word("fualts", kCommands), "faults");
  EXPECT_EQ(nearest_word("fault", kCommands), "faults");
  EXPECT_EQ(nearest_word("conf", kCommands), "conformance");
  EXPECT_EQ(nearest_word("topology", kCommands), "topo");
  EXPECT_EQ(nearest_word("ru", kCommands), "run");
}

TEST(NearestWord, TheNearestOfSeveralIsTaken) {
  const std::vector<const char*> known{"gpu_count", "gpu_model", "gpus"};
  EXPECT_EQ(nearest_word("gpu_modle", known), "gpu_model");
  EXPECT_EQ(nearest_word("gpuss", known), "gpus");
}

TEST(NearestWord, WhatIsFarFromAllIsNobodysTypo) {
  EXPECT_EQ(nearest_word("banana", kCommands), "");
  EXPECT_EQ(nearest_word("anything", std::vector<std::string>{}), "");
  EXPECT_EQ(nearest_word("faults" + std::string(200, 's'), kCommands), "");
}

}  // namespace
}  // namespace gs
