// How long pods run, as far as somebody says so: who waits is told when it starts, shorter ones may
// go first, and nobody is stopped for it.
#include <gtest/gtest.h>

#include "drivers/kubernetes/world_test.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

Pod lasting(Pod pod, const char* runtime) {
  set_label(pod.meta.annotations, kRuntimeAnnotation, runtime);
  return pod;
}

std::string told(const World& world, const std::string& uid) {
  const auto it = world.told().find(uid);
  return it == world.told().end() ? "" : it->second.message;
}

int count(const std::string& text, const std::string& words) {
  int found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

// The world begins at 00:16:40.
constexpr const char* kInTenMinutes = "expected start 1970-01-01 00:26:40Z";

TEST(DeskRuntime, who_waits_behind_it_is_told_once_when_it_starts) {
  World world;
  world.add_node("n1", 4);
  const std::string runs = world.add(lasting(world.make_pod("runs", 4), "10m"));
  world.play();
  ASSERT_EQ(world.pod(runs).node_name, "n1");
  const std::string waits = world.add_pod("waits", 4);
  world.advance(seconds(2));
  EXPECT_EQ(world.told().at(waits).reason, "Unschedulable");
  EXPECT_EQ(count(told(world, waits), "expected start"), 1) << told(world, waits);
  EXPECT_EQ(count(told(world, waits), kInTenMinutes), 1) << told(world, waits);
  EXPECT_TRUE(told(world, waits).starts_with("needs 4 GPUs")) << told(world, waits);
}

TEST(DeskRuntime, that_nobody_knows_makes_no_expected_start) {
  World world;
  world.add_node("n1", 4);
  world.add_pod("runs", 3);
  world.play();
  const std::string waits = world.add_pod("waits", 4);
  world.advance(seconds(2));
  EXPECT_EQ(count(told(world, waits), "no expected start"), 1) << told(world, waits);
  EXPECT_EQ(count(told(world, waits), "expected start"), 1) << told(world, waits);
  const std::string small = world.add_pod("small", 1);
  world.play();
  EXPECT_EQ(world.pod(small).node_name, "n1") << "nothing is kept free for whoever waits";
}

TEST(DeskRuntime, ends_nobody_who_takes_longer) {
  World world;
  world.add_node("n1", 4);
  const std::string runs = world.add(lasting(world.make_pod("runs", 4), "10s"));
  world.play();
  const std::string waits = world.add_pod("waits", 4);
  world.advance(minutes(2));
  EXPECT_FALSE(world.pod(runs).meta.deleted.has_value());
  EXPECT_EQ(world.pod(waits).node_name, "");
  world.end_pod(runs, PodPhase::Succeeded);
  world.play();
  EXPECT_EQ(world.pod(waits).node_name, "n1");
}

TEST(DeskRuntime, lets_those_go_first_who_are_done_by_then) {
  World world;
  world.add_node("n1", 4);
  world.add(lasting(world.make_pod("runs", 3), "10m"));
  world.play();
  const std::string waits = world.add_pod("waits", 4);
  world.play();
  const std::string unknown = world.add_pod("unknown", 1);
  const std::string longer = world.add(lasting(world.make_pod("longer", 1), "20m"));
  world.advance(seconds(2));
  EXPECT_EQ(world.pod(unknown).node_name, "");
  EXPECT_NE(told(world, unknown).find("would delay a job before it"), std::string::npos)
      << told(world, unknown);
  EXPECT_EQ(world.pod(longer).node_name, "");
  const std::string shorter = world.add(lasting(world.make_pod("shorter", 1), "5m"));
  world.play();
  EXPECT_EQ(world.pod(shorter).node_name, "n1");
  EXPECT_EQ(world.pod(waits).node_name, "");
}

TEST(DeskRuntime, that_was_too_short_is_planned_with_anew) {
  World world;
  world.add_node("n1", 4);
  const std::string runs = world.add(lasting(world.make_pod("runs", 3), "20s"));
  world.play();
  const std::string waits = world.add_pod("waits", 4);
  world.play();
  const std::string shorter = world.add(lasting(world.make_pod("shorter", 1), "30s"));
  world.advance(seconds(10));
  EXPECT_EQ(world.pod(shorter).node_name, "") << "it would not be done in time";
  world.advance(seconds(90));
  EXPECT_EQ(world.pod(shorter).node_name, "n1") << told(world, shorter);
  EXPECT_EQ(count(told(world, waits), "expected start"), 1) << told(world, waits);
  EXPECT_FALSE(world.pod(runs).meta.deleted.has_value());
}

TEST(DeskRuntime, of_a_gang_is_the_largest_of_its_pods) {
  World world;
  world.add_node("n1", 4);
  world.add(lasting(world.make_pod("a", 2, "ring", 2), "5m"));
  world.add(lasting(world.make_pod("b", 2, "ring", 2), "10m"));
  world.play();
  const std::string waits = world.add_pod("waits", 4);
  world.advance(seconds(2));
  EXPECT_EQ(count(told(world, waits), kInTenMinutes), 1) << told(world, waits);
}

TEST(DeskRuntime, counts_from_the_start_of_a_pod_that_is_found) {
  World world;
  world.add_node("n1", 4);
  Pod pod = lasting(world.make_pod("runs", 4), "10m");
  pod.started = Instant{1'000'000};
  const std::string runs = world.add(pod);
  world.play();
  ASSERT_EQ(world.pod(runs).node_name, "n1");
  world.advance(minutes(4));
  world.restart();
  const std::string waits = world.add_pod("waits", 4);
  world.advance(seconds(2));
  EXPECT_EQ(count(told(world, waits), kInTenMinutes), 1) << told(world, waits);
}

TEST(DeskRuntime, that_changes_while_the_pod_waits_is_the_new_one) {
  World world;
  world.add_node("n1", 4);
  const std::string first = world.add_pod("first", 4);
  world.play();
  const std::string second = world.add(lasting(world.make_pod("second", 4), "1h"));
  world.play();
  world.annotate(second, kRuntimeAnnotation, "10m");
  world.play();
  world.end_pod(first, PodPhase::Succeeded);
  world.play();
  ASSERT_EQ(world.pod(second).node_name, "n1");
  const std::string third = world.add_pod("third", 4);
  world.advance(seconds(2));
  EXPECT_EQ(count(told(world, third), kInTenMinutes), 1) << told(world, third);
}

}  // namespace
}  // namespace gs::kube
