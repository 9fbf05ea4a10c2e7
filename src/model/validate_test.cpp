// What is refused at the door, so that nothing behind it has to fear it.
#include <limits>

#include <gtest/gtest.h>

#include "model/job.hpp"
#include "model/node.hpp"
#include "model/tenant.hpp"

namespace gs {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST(Validate, AmountsWhoseSumsCouldOverflowAreRefused) {
  Node node;
  node.name = "n";
  EXPECT_TRUE(validate(node).ok());
  node.capacity.cpu_milli = kHuge;
  EXPECT_FALSE(validate(node).ok());
  node.capacity = {0, kMaxAmount, {{"pods", kHuge}}};
  EXPECT_FALSE(validate(node).ok());

  TaskRequest request;
  EXPECT_TRUE(validate(request).ok());
  request.resources.memory_bytes = kHuge;
  EXPECT_FALSE(validate(request).ok());

  Tenant tenant;
  tenant.id = "t";
  tenant.guaranteed = kUnlimitedShare;
  EXPECT_TRUE(validate(tenant).ok());
  tenant.guaranteed.cpu_milli = kHuge;
  EXPECT_FALSE(validate(tenant).ok());
  tenant.guaranteed.cpu_milli = 0;
  tenant.over_quota_weight = kUnlimited;
  EXPECT_FALSE(validate(tenant).ok());
}

}  // namespace
}  // namespace gs
