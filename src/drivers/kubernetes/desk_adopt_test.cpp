// What a scheduler finds bound: it counts what that holds, no less and no more, also where what it
// asked for can't be read any more because its claim was deleted under it.
#include <gtest/gtest.h>

#include "drivers/kubernetes/desk.hpp"
#include "drivers/kubernetes/world_test.hpp"
#include "wire/kube/quantity.hpp"

namespace gs::kube {
namespace {

Pod with_cpu(Pod pod, const char* cpu) {
  pod.containers[0].requests.push_back({"cpu", *parse_quantity(cpu)});
  return pod;
}

TEST(DeskAdopts, the_cpu_of_a_pod_whose_claim_is_gone) {
  World world;
  world.add_node("n1", 4);
  const std::string runs = world.add(with_cpu(world.make_pod("runs", 1), "40"));
  world.play();
  ASSERT_EQ(world.pod(runs).node_name, "n1");
  world.forget_claim(runs);
  world.restart();
  const std::string late = world.add(with_cpu(world.make_pod("late", 1), "40"));
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "") << "the node has 64";
  world.remove_pod(runs);
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "n1");
}

TEST(DeskAdopts, the_part_of_a_gpu_of_a_pod_whose_claim_is_gone) {
  World world;
  world.add_node("n1", 1);
  const std::string runs = world.add_shared("runs", 300, 0);
  world.play();
  ASSERT_EQ(world.pod(runs).node_name, "n1");
  world.forget_claim(runs);
  world.restart();
  const std::string beside = world.add_shared("beside", 600, 0);
  const std::string more = world.add_shared("more", 200, 0);
  world.play();
  EXPECT_EQ(world.pod(beside).node_name, "n1");
  EXPECT_EQ(world.pod(more).node_name, "") << "100 of the GPU are left";
}

TEST(DeskAdopts, the_device_that_a_map_shares_when_the_map_can_not_be_read) {
  World world;
  world.add_node("n1", 2);
  const std::string runs = world.add_pinned("runs", "n1", {0}, "map-a");
  world.play();
  ASSERT_EQ(world.pod(runs).node_name, "n1");
  world.forget_claim(runs);
  world.restart();
  const std::string sibling = world.add_pinned("sibling", "n1", {0}, "map-a");
  const std::string stranger = world.add_pinned("stranger", "n1", {0}, "map-b");
  world.play();
  EXPECT_EQ(world.pod(sibling).node_name, "n1");
  EXPECT_EQ(world.pod(stranger).node_name, "");
}

// One node of 64 CPUs, and a pod of 10 on it that is resized where it is.
class ResizedPods : public testing::TestWithParam<const char*> {  // scheduler's name
 protected:
  ResizedPods() {
    Pod pod = with_cpu(world_.make_pod("runs", 0), "10");
    pod.scheduler_name = GetParam();
    runs_ = world_.add(pod);
    world_.bind_by_another(runs_, "n1", {});
  }
  void resize(const char* cpu) {
    Pod pod = world_.pod(runs_);
    pod.containers[0].requests.back().amount = *parse_quantity(cpu);
    world_.add(pod);
    world_.play();
  }
  // Whether a pod of so many CPUs finds room beside it.
  bool has_room_for(const char* cpu) {
    const std::string uid =
        world_.add(with_cpu(world_.make_pod("p" + std::to_string(++last_), 0), cpu));
    world_.play();
    const bool has = !world_.pod(uid).node_name.empty();
    world_.remove_pod(uid);
    world_.play();
    return has;
  }

  World world_;
  std::string runs_;
  int last_ = 0;
};

TEST_P(ResizedPods, take_what_they_have_now) {
  world_.add_node("n1", 0);
  world_.play();
  EXPECT_TRUE(has_room_for("54"));
  resize("40");
  EXPECT_TRUE(has_room_for("24"));
  EXPECT_FALSE(has_room_for("25"));
  resize("5");
  EXPECT_TRUE(has_room_for("59"));
  EXPECT_FALSE(has_room_for("60"));
  resize("40");
  world_.remove_pod(runs_);
  EXPECT_TRUE(has_room_for("64")) << "nothing of it is left";
}

TEST_P(ResizedPods, take_it_also_where_their_node_comes_late_or_again) {
  resize("20");
  world_.add_node("n1", 0);
  world_.play();
  EXPECT_TRUE(has_room_for("44"));
  EXPECT_FALSE(has_room_for("45"));
  resize("40");
  world_.remove_node("n1");
  world_.play();
  world_.add_node("n1", 0);
  world_.play();
  EXPECT_TRUE(has_room_for("24"));
  EXPECT_FALSE(has_room_for("25"));
  world_.end_pod(runs_, PodPhase::Succeeded);
  EXPECT_TRUE(has_room_for("64"));
  EXPECT_FALSE(has_room_for("65"));
}

INSTANTIATE_TEST_SUITE_P(Of, ResizedPods, testing::Values("gpu-scheduler", "default-scheduler"),
                         [](const auto& scheduler) {
                           return std::string(scheduler.param).substr(0, 3);
                         });

// It can't move, and whoever is made in its stead is another pod.
TEST(DeskAdopts, nobody_makes_room_for_a_pod_whose_node_is_gone) {
  World world;
  world.add_node("n1", 4);
  const std::string important = world.add_pod("important", 4, {}, 0, "gpu-scheduler", 100);
  world.play();
  world.add_node("n2", 4);
  const std::string lesser = world.add_pod("lesser", 4);
  world.play();
  ASSERT_EQ(world.pod(lesser).node_name, "n2");
  world.remove_node("n1");
  world.advance(seconds(5));
  ASSERT_TRUE(world.exists(lesser));
  EXPECT_FALSE(world.pod(lesser).meta.deleted) << "evicted for nobody";
  world.add_node("n1", 4);
  const std::string late = world.add_pod("late", 1);
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "") << "n1 has come back with its pod";
  world.remove_pod(important);
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "n1");
  EXPECT_TRUE(world.left_over().empty());
}

// Another place was found for the member that lay on it; then the node comes back, and goes again.
TEST(DeskAdopts, a_node_that_comes_and_goes_leaves_nothing_taken_elsewhere) {
  World world;
  for (const char* name : {"n1", "n2"}) world.add_node(name, 4);
  const std::string a = world.add_pod("a", 4, "ring", 2);
  const std::string b = world.add_pod("b", 4, "ring", 2);
  world.play();
  const std::string lost = world.pod(a).node_name;
  world.add_node("n3", 4);
  world.play();
  for (int i = 0; i < 2; ++i) {
    world.remove_node(lost);
    world.turn();
    world.add_node(lost, 4);
    if (i == 0) world.turn();
  }
  world.turn();
  world.remove_pod(a);
  world.remove_pod(b);
  world.advance(seconds(90));
  for (int i = 0; i < 3; ++i) world.add_pod("more" + std::to_string(i), 4);
  world.play();
  int bound = 0;
  for (const auto& [uid, pod] : world.pods()) bound += !pod.node_name.empty();
  EXPECT_EQ(bound, 3) << "three nodes, three pods";
}

TEST(DeskAdopts, who_is_on_a_gpu_that_was_unhealthy_has_it_when_it_is_healthy_again) {
  World world;
  world.add_node("n1", 2);
  world.set_health("n1", 1, Health::Unhealthy);
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "default-scheduler");
  world.bind_by_another(theirs, "n1", {1});
  const std::string ours = world.add_pod("ours", 2);
  world.play();
  world.set_health("n1", 1, Health::Healthy);
  world.play();
  EXPECT_EQ(world.pod(ours).node_name, "");
  world.remove_pod(theirs);
  world.play();
  EXPECT_EQ(world.pod(ours).node_name, "n1");
}

TEST(DeskAdopts, who_is_on_a_gpu_that_breaks_and_heals_has_it_all_the_time) {
  World world;
  world.add_node("n1", 2);
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "default-scheduler");
  world.bind_by_another(theirs, "n1", {1});
  world.play();
  world.set_health("n1", 1, Health::Unhealthy);
  world.play();
  world.set_health("n1", 1, Health::Healthy);
  world.play();
  const std::string one = world.add_pod("one", 1);
  world.play();
  EXPECT_EQ(world.pod(one).node_name, "n1") << "GPU 0 is free";
  const std::string other = world.add_pod("other", 1);
  world.play();
  EXPECT_EQ(world.pod(other).node_name, "");
  world.remove_pod(theirs);
  world.play();
  EXPECT_EQ(world.pod(other).node_name, "n1");
}

// Found at a moment at which its node had no devices to offer.
TEST(DeskAdopts, who_is_on_a_gpu_that_comes_late_has_it) {
  World world;
  world.add_node("n1", 0);
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "default-scheduler");
  world.bind_by_another(theirs, "n1", {1});
  const std::string ours = world.add_pod("ours", 2);
  world.play();
  world.add_node("n1", 2);
  world.play();
  EXPECT_EQ(world.pod(ours).node_name, "");
}

// As when a node's agent begins to report, or its device plugin is restarted.
TEST(DeskAdopts, what_is_known_of_devices_may_change_under_those_who_have_them) {
  World world;
  world.add_node("n1", 4);
  const std::string alone = world.add_pod("alone", 1);
  const std::string a = world.add_pod("a", 1, "ring", 2);
  const std::string b = world.add_pod("b", 1, "ring", 2);
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "default-scheduler");
  world.play();
  world.bind_by_another(theirs, "n1", {3});
  world.play();
  for (const char* model : {"NVIDIA H100 80GB HBM3", "", "H100"}) {
    world.set_model("n1", model);
    world.play();
    for (const std::string& uid : {alone, a, b}) {
      ASSERT_TRUE(world.exists(uid)) << uid << ", " << model;
      EXPECT_FALSE(world.pod(uid).meta.deleted) << uid << ", " << model;
    }
  }
  const std::string late = world.add_pod("late", 1);
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "") << "all four are taken";
}

TEST(DeskAdopts, a_place_that_is_ready_for_a_pod_yet_to_be_made_may_be_taken_by_another_scheduler) {
  World world;
  world.set_controllers(true);  // a gang that has lost a member for good starts over
  for (const char* name : {"n1", "n2", "n3"}) world.add_node(name, 1);
  const std::string a = world.add_pod("a", 1, "ring", 2);
  const std::string b = world.add_pod("b", 1, "ring", 2);
  world.play();
  const std::string kept = world.pod(b).node_name;
  world.remove_pod(a);
  world.play();  // the engine has found a place for whoever follows
  std::vector<std::string> others;
  for (const char* name : {"n1", "n2", "n3"}) {
    if (name == kept) continue;
    others.push_back(world.add_pod("theirs-" + std::string(name), 1, {}, 0, "default-scheduler"));
    world.bind_by_another(others.back(), name, {0});
    world.play();
  }
  const std::string again = world.add_pod("a2", 1, "ring", 2);
  world.play();
  EXPECT_EQ(world.pod(again).node_name, "");
  world.remove_pod(others[0]);
  world.play();
  int bound = 0;
  for (const auto& [uid, pod] : world.pods()) bound += !pod.node_name.empty();
  EXPECT_EQ(bound, 3) << "the gang, and one of theirs";
}

TEST(DeskAdopts, who_is_bound_to_a_node_that_is_not_there_looks_for_no_place) {
  World world;
  const std::string uid = world.add_pod("a", 1);
  world.play();
  world.bind_by_another(uid, "elsewhere", {0});
  world.play();
  world.add_node("n1", 1);
  world.play();  // comes to rest
  EXPECT_EQ(world.pod(uid).node_name, "elsewhere");
  world.add_node("elsewhere", 1);
  const std::string late = world.add_pod("late", 1);
  world.play();
  EXPECT_EQ(world.pod(late).node_name, "n1") << "a has the other one";
}

}  // namespace
}  // namespace gs::kube
