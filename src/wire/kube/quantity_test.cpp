#include "wire/kube/quantity.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs::kube {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Row {
  const char* text;
  std::int64_t value, milli;
};

TEST(Quantity, reads_what_kubernetes_reads) {
  // Value() and MilliValue() of k8s.io/apimachinery 0.36.3.
  const Row rows[] = {{"100m", 1, 100},
                      {"1.5Gi", 1610612736, 1610612736000},
                      {"1e3", 1000, 1000000},
                      {"1E3", 1000, 1000000},
                      {"1e+5", 100000, 100000000},
                      {"0.1m", 1, 1},
                      {"1.", 1, 1000},
                      {"+.5", 1, 500},
                      {"-1.5", -2, -1500},
                      {"0", 0, 0},
                      {"00012", 12, 12000},
                      {"0.1Ki", 103, 102400},
                      {"0.0000000001", 1, 1},
                      {"1e-30", 1, 1},
                      {"123456789012345678901234n", 123456789012346, 123456789012345679},
                      {"1.23456789012345678901Gi", 1325607179, 1325607178193},
                      {"3.1415926535897932384626433Mi", 3294199, 3294198659},
                      {"5252.130e0", 5253, 5252130},
                      {"32478252E2", 3247825200, 3247825200000}};
  for (const Row& row : rows) {
    const Result<Quantity> read = parse_quantity(row.text);
    ASSERT_TRUE(read.ok()) << row.text;
    EXPECT_EQ(read->value(), row.value) << row.text;
    EXPECT_EQ(read->milli(), row.milli) << row.text;
  }
}

TEST(Quantity, what_is_too_big_becomes_the_most) {
  for (const char* text : {"12E", "8Ei", "9223372036854775807", "9223372036854775808", "1e30",
                           "99999999999999999999999", "1e1000", "98.E"}) {
    const Result<Quantity> read = parse_quantity(text);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(read->value(), kMost) << text;
    EXPECT_EQ(read->milli(), kMost) << text;
  }
  EXPECT_EQ(parse_quantity("-12E")->value(), -kMost);
  Quantity sum = *parse_quantity("12E");
  sum += sum;
  EXPECT_EQ(sum.value(), kMost);
}

TEST(Quantity, says_what_a_quantity_looks_like) {
  for (const char* text : {"", ".", "1 ", "1e", "1_0", "0x10", "1.5.2", "--1", "+-1", "1e+",
                           "1e+-3", "5e-", "Gi", "1gi", "1GB", "1 Gi", "e3"})
    EXPECT_FALSE(parse_quantity(text).ok()) << text;
  EXPECT_EQ(parse_quantity("4 GB").error().message,
            "'4 GB' is no quantity; they look like 2, 500m, 1.5Gi or 1e3 (suffixes: n u m k M G T "
            "P E Ki Mi Gi Ti Pi Ei)");
}

TEST(Quantity, the_same_amount_written_differently_is_the_same) {
  Rng rng(11);
  for (int i = 0; i < 5000; ++i) {
    const auto milli = static_cast<std::int64_t>(rng.below(1'000'000'000'000));
    const std::string whole = std::to_string(milli / 1000);
    const std::string thousandths = std::to_string(1000 + milli % 1000).substr(1);
    const std::string forms[] = {std::to_string(milli) + "m", whole + "." + thousandths,
                                 std::to_string(milli) + "e-3", std::to_string(milli) + "000u",
                                 whole + "." + thousandths + "000000000000000000000000"};
    for (const std::string& form : forms) {
      const Result<Quantity> read = parse_quantity(form);
      ASSERT_TRUE(read.ok()) << form;
      EXPECT_EQ(read->milli(), milli) << form;
      EXPECT_EQ(read->value(), (milli + 999) / 1000) << form;
    }
    const Result<Quantity> more = parse_quantity(forms[0].substr(0, forms[0].size() - 1) + ".01m");
    EXPECT_EQ(more->milli(), milli + 1) << forms[0];
  }
}

}  // namespace
}  // namespace gs::kube
