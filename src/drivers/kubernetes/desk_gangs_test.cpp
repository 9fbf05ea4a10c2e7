// Gangs whose pods fail, end and are made anew one by one, and what happens to them when a
// scheduler begins in the middle.
#include <gtest/gtest.h>

#include "drivers/kubernetes/world_test.hpp"

namespace gs::kube {
namespace {

// Four nodes of four GPUs, and a gang of three that takes three of them.
class GangAtTheDesk : public testing::Test {
 protected:
  GangAtTheDesk() {
    for (int i = 0; i < 4; ++i) world_.add_node("n" + std::to_string(i), 4);
  }

  void submit() {
    for (int i = 0; i < 3; ++i)
      uids_.push_back(world_.add_pod("g" + std::to_string(i), 4, "ring", 3));
    world_.play();
    for (const std::string& uid : uids_) ASSERT_NE(world_.pod(uid).node_name, "");
  }
  int bound() const {
    int count = 0;
    for (const auto& [uid, pod] : world_.pods()) count += !pod.node_name.empty() && !pod.ended();
    return count;
  }

  World world_;
  std::vector<std::string> uids_;
};

TEST_F(GangAtTheDesk, a_gang_that_waits_takes_in_more_than_it_needs) {
  for (int i = 0; i < 3; ++i) world_.add_pod("busy" + std::to_string(i), 4);
  world_.play();
  for (int i = 0; i < 4; ++i) {
    uids_.push_back(world_.add_pod("g" + std::to_string(i), 4, "pair", 2));
    world_.play();
  }
  EXPECT_EQ(bound(), 3);
  world_.remove_pod("uid-busy0");
  world_.play();
  EXPECT_GE(bound(), 4) << "two of it fit, and it needs no more";
}

TEST_F(GangAtTheDesk, a_gang_starts_with_those_that_are_there_whichever_has_gone) {
  for (int i = 0; i < 3; ++i) world_.add_pod("busy" + std::to_string(i), 4);
  world_.play();
  for (int i = 0; i < 3; ++i)
    uids_.push_back(world_.add_pod("g" + std::to_string(i), 4, "ring", 2));
  world_.play();
  EXPECT_EQ(bound(), 3);
  world_.remove_pod(uids_[0]);
  world_.play();
  world_.remove_pod("uid-busy0");
  world_.play();
  EXPECT_NE(world_.pod(uids_[1]).node_name, "");
  EXPECT_NE(world_.pod(uids_[2]).node_name, "");
}

TEST_F(GangAtTheDesk, a_member_that_fails_is_made_anew_though_the_others_are_done) {
  submit();
  world_.end_pod(uids_[0], PodPhase::Succeeded);
  world_.end_pod(uids_[1], PodPhase::Succeeded);
  world_.end_pod(uids_[2], PodPhase::Failed);
  world_.play();
  const std::string again = world_.make_anew(uids_[2]);
  world_.play();
  EXPECT_NE(world_.pod(again).node_name, "");
}

TEST_F(GangAtTheDesk, who_is_done_counts_for_a_scheduler_that_begins_after_it) {
  submit();
  world_.end_pod(uids_[0], PodPhase::Succeeded);
  world_.play();
  world_.restart();
  const std::string again = world_.make_anew(uids_[2]);
  world_.play();
  EXPECT_NE(world_.pod(again).node_name, "");
}

TEST_F(GangAtTheDesk, who_is_done_does_not_count_for_another_gang_of_the_same_name) {
  submit();
  for (const std::string& uid : uids_) world_.end_pod(uid, PodPhase::Succeeded);
  world_.play();
  Pod pod = world_.make_pod("later", 1, "ring", 3);
  pod.meta.owners[0].uid = "another";
  const std::string later = world_.add(pod);
  world_.play();
  EXPECT_EQ(world_.pod(later).node_name, "");
}

TEST_F(GangAtTheDesk, a_gang_that_is_found_in_pieces_is_whole_again_with_its_missing_member) {
  submit();
  world_.remove_pod(uids_[2]);
  world_.restart();
  world_.play();
  const std::string again = world_.add_pod("g2-again", 4, "ring", 3);
  world_.play();
  ASSERT_EQ(bound(), 3);
  // It starts over, as a gang does; pods by themselves would be left to Kubernetes.
  world_.set_ready(world_.pod(uids_[0]).node_name, false);
  world_.play();
  EXPECT_TRUE(world_.pod(uids_[0]).meta.deleted.has_value());
}

TEST_F(GangAtTheDesk, a_member_that_its_dead_node_never_lets_go_is_replaced) {
  submit();
  world_.set_controllers(true);
  world_.set_ready(world_.pod(uids_[0]).node_name, false);
  world_.play();
  EXPECT_TRUE(world_.exists(uids_[0]));
  EXPECT_EQ(bound(), 4) << "three, and the one that hangs";
}

TEST_F(GangAtTheDesk, followers_of_members_that_take_their_time_to_go_start_as_a_gang) {
  submit();
  world_.set_controllers(true);
  world_.add_pod("greater", 4, {}, 0, "gpu-scheduler", 100);  // takes the free node
  world_.play();
  world_.add_pod("greatest", 4, {}, 0, "gpu-scheduler", 1000);  // takes that of a member
  world_.play();
  EXPECT_EQ(bound(), 2) << "two of the gang would fit, but it has three";
  for (const char* greater : {"uid-greater", "uid-greatest"}) world_.remove_pod(greater);
  world_.play();
  EXPECT_EQ(bound(), 3);
}

TEST_F(GangAtTheDesk, a_gang_on_a_node_that_is_down_already_when_the_scheduler_begins_starts_over) {
  submit();
  world_.set_controllers(true);
  const std::string lost = world_.pod(uids_[0]).node_name;
  world_.set_ready(lost, false);
  world_.restart();
  world_.advance(seconds(5));
  EXPECT_TRUE(world_.pod(uids_[0]).meta.deleted.has_value());
  EXPECT_EQ(bound(), 4) << "three, and the one that hangs";
}

TEST_F(GangAtTheDesk,
       a_gang_on_a_gpu_that_is_broken_already_when_the_scheduler_begins_starts_over) {
  submit();
  world_.set_controllers(true);
  world_.set_health(world_.pod(uids_[0]).node_name, 1, Health::Unhealthy);
  world_.restart();
  world_.advance(seconds(5));
  EXPECT_FALSE(world_.exists(uids_[0]));
  EXPECT_EQ(bound(), 3);
}

TEST_F(GangAtTheDesk, who_hangs_on_a_dead_node_takes_no_place_from_its_gang) {
  submit();
  world_.set_ready(world_.pod(uids_[0]).node_name, false);
  world_.play();
  const std::string again = world_.add_pod("g0-again", 4, "ring", 3);
  world_.play();
  ASSERT_NE(world_.pod(again).node_name, "");
  ASSERT_TRUE(world_.exists(uids_[0])) << "its node does not answer";
  world_.restart();
  world_.play();
  world_.end_pod(uids_[1], PodPhase::Succeeded);
  world_.play();
  const std::string other = world_.add_pod("other", 4);
  world_.play();
  EXPECT_NE(world_.pod(other).node_name, "");
}

TEST_F(GangAtTheDesk, a_gang_that_a_budget_keeps_takes_nobodys_place) {
  submit();
  const std::string other = world_.add_pod("other", 4, {}, 0, "gpu-scheduler", 100);
  world_.play();
  ASSERT_NE(world_.pod(other).node_name, "");
  PodDisruptionBudget budget;
  budget.meta.name = "budget";
  budget.meta.ns = "default";
  budget.selector = LabelSelector{};
  budget.current = true;
  world_.put(budget);
  world_.play();
  world_.set_health(world_.pod(uids_[0]).node_name, 1, Health::Unhealthy);
  world_.set_controllers(true);
  world_.advance(seconds(5));
  EXPECT_TRUE(world_.exists(other)) << "it is more important than the gang says to be";
}

}  // namespace
}  // namespace gs::kube
