#include "wire/kube/device_names.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

gs::Node node_with_uuids() {
  gs::Node node;
  node.gpus.resize(4);
  node.gpus[1].uuid = "GPU-1";
  node.gpus[2].uuid = "GPU-2";
  return node;
}

TEST(DeviceNames, indexes_are_counted_anew_in_a_container_that_sees_no_others) {
  EXPECT_EQ(device_names({2, 3}, node_with_uuids(), DeviceNaming::Index),
            (DeviceNames{"2,3", "0,1"}));
  EXPECT_EQ(names_by_index({5}), (DeviceNames{"5", "0"}));
  EXPECT_EQ(names_by_index({}), DeviceNames{});
}

TEST(DeviceNames, uuids_are_the_same_everywhere) {
  EXPECT_EQ(device_names({1, 2}, node_with_uuids(), DeviceNaming::Uuid),
            (DeviceNames{"GPU-1,GPU-2", "GPU-1,GPU-2"}));
}

TEST(DeviceNames, one_uuid_that_is_not_known_names_all_by_index) {
  EXPECT_EQ(device_names({2, 3}, node_with_uuids(), DeviceNaming::Uuid),
            (DeviceNames{"2,3", "0,1"}));
  EXPECT_EQ(device_names({2, 9}, node_with_uuids(), DeviceNaming::Uuid),
            (DeviceNames{"2,9", "0,1"}));
}

TEST(DeviceNames, a_naming_is_called_as_users_write_it) {
  EXPECT_STREQ(word_of(DeviceNaming::Index), "index");
  EXPECT_STREQ(word_of(DeviceNaming::Uuid), "uuid");
}

}  // namespace
}  // namespace gs::kube
