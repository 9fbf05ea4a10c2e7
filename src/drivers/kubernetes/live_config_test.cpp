#include "drivers/kubernetes/live_config.hpp"

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

SchedulerConfig with_name(const std::string& name) {
  SchedulerConfig config;
  config.scheduler_names = {name};
  config.leases = false;
  return config;
}

TEST(LiveConfig, objects_count_in_their_order_and_before_the_start) {
  LiveConfig live(SchedulerConfig{}, {});
  EXPECT_TRUE(live.put(ConfigSource::SystemConfigMap, with_name("map")));
  EXPECT_EQ(live.in_force().scheduler_names.front(), "map");
  EXPECT_TRUE(live.put(ConfigSource::SchedulerConfig, with_name("object")));
  EXPECT_FALSE(live.put(ConfigSource::SystemConfigMap, with_name("map2")));
  EXPECT_EQ(live.in_force().scheduler_names.front(), "object");
  EXPECT_TRUE(live.remove(ConfigSource::SchedulerConfig));
  EXPECT_EQ(live.in_force().scheduler_names.front(), "map2");
  EXPECT_TRUE(live.remove(ConfigSource::SystemConfigMap));
  EXPECT_EQ(live.in_force().scheduler_names.front(), "gpu-scheduler");
}

TEST(LiveConfig, what_can_not_be_read_changes_nothing) {
  LiveConfig live(SchedulerConfig{}, {});
  EXPECT_TRUE(live.put(ConfigSource::SchedulerConfig, with_name("good")));
  EXPECT_FALSE(live.put(ConfigSource::SchedulerConfig, invalid("spec: there is no such field")));
  EXPECT_EQ(live.in_force().scheduler_names.front(), "good");
}

TEST(LiveConfig, leases_and_given_names_stay) {
  LiveConfig live(SchedulerConfig{}, {true, false});
  EXPECT_TRUE(live.put(ConfigSource::SchedulerConfig, with_name("other")));
  EXPECT_TRUE(live.in_force().leases);
  EXPECT_EQ(live.in_force().scheduler_names.front(), "gpu-scheduler");
}

TEST(LiveConfig, says_how_devices_are_named_unless_the_command_line_does) {
  SchedulerConfig uuids;
  uuids.device_naming = DeviceNaming::Uuid;
  LiveConfig live(SchedulerConfig{}, {});
  EXPECT_TRUE(live.put(ConfigSource::SchedulerConfig, uuids));
  EXPECT_EQ(live.in_force().device_naming, DeviceNaming::Uuid);
  LiveConfig given(uuids, {false, true});
  EXPECT_TRUE(given.put(ConfigSource::SchedulerConfig, SchedulerConfig{}));
  EXPECT_EQ(given.in_force().device_naming, DeviceNaming::Uuid);
}

TEST(LiveConfig, whoever_is_outranked_is_told_by_whom) {
  LiveConfig live(SchedulerConfig{}, {});
  live.put(ConfigSource::SystemConfigMap, SchedulerConfig{});
  EXPECT_EQ(live.standing(ConfigSource::SystemConfigMap), (ConfigStanding{true, "in force"}));
  live.put(ConfigSource::OwnConfigMap, SchedulerConfig{});
  EXPECT_EQ(
      live.standing(ConfigSource::SystemConfigMap),
      (ConfigStanding{false, "outranked by ConfigMap gpu-scheduler/topology-scheduler-config"}));
  live.put(ConfigSource::SchedulerConfig, SchedulerConfig{});
  for (const ConfigSource low : {ConfigSource::SystemConfigMap, ConfigSource::OwnConfigMap})
    EXPECT_EQ(live.standing(low),
              (ConfigStanding{false, "outranked by SchedulerConfig topology-scheduler-config"}));
  live.remove(ConfigSource::SchedulerConfig);
  EXPECT_EQ(live.standing(ConfigSource::OwnConfigMap), (ConfigStanding{true, "in force"}));
}

TEST(LiveConfig, what_is_not_taken_of_an_object_is_named) {
  LiveConfig live(SchedulerConfig{}, {true, true});
  SchedulerConfig config = with_name("other");
  config.device_naming = DeviceNaming::Uuid;
  config.lease_namespace = "elsewhere";
  config.leader_lease = "another";
  live.put(ConfigSource::SchedulerConfig, config);
  EXPECT_EQ(live.standing(ConfigSource::SchedulerConfig).words,
            "in force, except for schedulerNames (--scheduler-name counts more), deviceNaming "
            "(--device-naming counts more), leases (with a restart only), leaseNamespace (with a "
            "restart only), leaderElectLease (with a restart only)");
  live.put(ConfigSource::SchedulerConfig, SchedulerConfig{});
  EXPECT_EQ(live.standing(ConfigSource::SchedulerConfig).words, "in force");
}

TEST(LiveConfig, nobody_misses_what_he_has_not_asked_for) {
  SchedulerConfig base = with_name("mine");
  base.lease_namespace = "kube-system";
  LiveConfig live(base, {true, false});
  live.put(ConfigSource::SchedulerConfig, SchedulerConfig{});
  EXPECT_EQ(live.standing(ConfigSource::SchedulerConfig).words, "in force");
}

}  // namespace
}  // namespace gs::kube
