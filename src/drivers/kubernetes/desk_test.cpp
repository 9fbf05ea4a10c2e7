// The desk against an API server that the test plays: what is bound, evicted, said and given back.
#include "drivers/kubernetes/desk.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "drivers/kubernetes/binder.hpp"
#include "drivers/kubernetes/world_test.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

TEST(Desk, binds_a_pod_to_a_node_with_a_free_gpu) {
  World world;
  world.add_node("n1", 8);
  const std::string uid = world.add_pod("a", 2);
  world.play();
  EXPECT_EQ(world.pod(uid).node_name, "n1");
  EXPECT_EQ(world.devices(uid).size(), 2U);
  EXPECT_EQ(world.leases().size(), 2U);
}

TEST(Desk, a_pod_that_ends_gives_its_gpus_and_leases_back) {
  World world;
  world.add_node("n1", 2);
  const std::string first = world.add_pod("a", 2);
  world.play();
  const std::string second = world.add_pod("b", 2);
  world.play();
  EXPECT_EQ(world.pod(second).node_name, "");
  world.end_pod(first, PodPhase::Succeeded);
  world.play();
  EXPECT_EQ(world.pod(second).node_name, "n1");
  EXPECT_EQ(world.leases().size(), 2U);
}

TEST(Desk, a_pod_that_waits_is_told_why) {
  World world;
  world.add_node("n1", 2);
  const std::string uid = world.add_pod("a", 4);
  world.play();
  world.advance(seconds(2));
  ASSERT_TRUE(world.told().contains(uid));
  EXPECT_EQ(world.told().at(uid).reason, "Unschedulable");
  EXPECT_NE(world.told().at(uid).message.find("4 GPUs"), std::string::npos)
      << world.told().at(uid).message;
}

TEST(Desk, a_gang_binds_only_when_all_of_it_is_there_and_fits) {
  World world;
  world.add_node("n1", 4);
  world.add_node("n2", 4);
  const std::string a = world.add_pod("a", 4, "ring", 3);
  const std::string b = world.add_pod("b", 4, "ring", 3);
  world.play();
  EXPECT_EQ(world.pod(a).node_name, "");
  const std::string c = world.add_pod("c", 4, "ring", 3);
  world.play();
  EXPECT_EQ(world.pod(a).node_name + world.pod(b).node_name + world.pod(c).node_name, "");
  EXPECT_TRUE(world.leases().empty());
  world.add_node("n3", 4);
  world.play();
  EXPECT_NE(world.pod(a).node_name, "");
  EXPECT_NE(world.pod(b).node_name, "");
  EXPECT_NE(world.pod(c).node_name, "");
}

TEST(Desk, pods_of_other_schedulers_keep_what_they_have) {
  World world;
  world.add_node("n1", 4);
  const std::string theirs = world.add_pod("theirs", 3, {}, 0, "default-scheduler");
  world.bind_by_another(theirs, "n1", {});
  world.play();
  const std::string big = world.add_pod("big", 2);
  const std::string small = world.add_pod("small", 1);
  world.play();
  EXPECT_EQ(world.pod(big).node_name, "");
  EXPECT_EQ(world.pod(small).node_name, "n1");
  world.remove_pod(theirs);
  world.play();
  EXPECT_EQ(world.pod(big).node_name, "n1");
}

TEST(Desk, a_scheduler_that_starts_anew_finds_what_runs) {
  World world;
  world.add_node("n1", 4);
  const std::string first = world.add_pod("a", 3);
  world.play();
  world.restart();
  const std::string second = world.add_pod("b", 2);
  world.play();
  EXPECT_EQ(world.pod(second).node_name, "");
  world.end_pod(first, PodPhase::Failed);
  world.play();
  EXPECT_EQ(world.pod(second).node_name, "n1");
}

TEST(Desk, a_scheduler_that_starts_asks_those_first_that_run) {
  std::vector<std::string> asked;
  Desk desk({}, [&](const Pod& pod) {
    asked.push_back(pod.meta.name);
    return PodAsk{};
  });
  for (const char* name : {"waits", "runs"}) {
    Pod pod;
    pod.meta.name = pod.meta.uid = name;
    pod.meta.created = Instant{name == std::string("waits") ? 1 : 2};
    pod.scheduler_name = "gpu-scheduler";
    if (name == std::string("runs")) pod.node_name = "n1";
    desk.put(pod);
  }
  desk.synced();
  ASSERT_GE(asked.size(), 2U);
  EXPECT_EQ(asked[0] + " " + asked[1], "runs waits") << "what they were given is taken";
}

TEST(Desk, a_more_important_pod_evicts_a_lesser_one) {
  World world;
  world.add_node("n1", 2);
  const std::string lesser = world.add_pod("lesser", 2);
  world.play();
  const std::string greater = world.add_pod("greater", 2, {}, 0, "gpu-scheduler", 1000);
  world.play();
  EXPECT_FALSE(world.exists(lesser));
  EXPECT_EQ(world.pod(greater).node_name, "n1");
}

TEST(Desk, a_pod_that_its_budget_keeps_is_the_last_to_be_evicted) {
  World world;
  world.add_node("n1", 2);
  world.add_node("n2", 2);
  Pod pod = world.make_pod("kept", 2);
  set_label(pod.meta.labels, "app", "kept");
  const std::string kept = world.add(pod);
  pod = world.make_pod("lesser", 2);
  const std::string lesser = world.add(pod);
  world.play();
  PodDisruptionBudget budget;
  budget.meta.name = "budget";
  budget.meta.ns = "default";
  budget.selector = LabelSelector{{{"app", LabelOp::In, {"kept"}}}};
  budget.current = true;
  world.put(budget);
  world.play();
  world.add_pod("greater", 2, {}, 0, "gpu-scheduler", 1000);
  world.play();
  EXPECT_TRUE(world.exists(kept));
  EXPECT_FALSE(world.exists(lesser));
  world.add_pod("greater-2", 2, {}, 0, "gpu-scheduler", 1000);
  world.play();
  EXPECT_TRUE(world.exists(kept)) << "nobody takes the last one either, while it must stay";
  budget.disruptions_allowed = 1;
  world.put(budget);
  world.play();
  EXPECT_FALSE(world.exists(kept));
}

TEST(Desk, pods_of_one_map_share_the_gpus_that_it_gives_to_several) {
  World world;
  world.add_node("n1", 4);
  const std::string a = world.add_pinned("a", "n1", {3}, "map");
  const std::string b = world.add_pinned("b", "n1", {2, 3}, "map");
  world.play();
  EXPECT_EQ(world.devices(a), std::vector<int>{3});
  EXPECT_EQ(world.devices(b), (std::vector<int>{2, 3}));
  EXPECT_EQ(world.leases().at("gpu-n1-3").holders.size(), 2U);
  world.restart();  // who runs is known by where it runs; those who share with it may still come
  const std::string other = world.add_pinned("other", "n1", {3}, "another map");
  const std::string c = world.add_pinned("c", "n1", {3}, "map");
  world.play();
  EXPECT_EQ(world.pod(other).node_name, "");
  EXPECT_EQ(world.devices(c), std::vector<int>{3});
  for (const std::string& uid : {a, b, c}) {
    EXPECT_EQ(world.pod(other).node_name, "");
    world.remove_pod(uid);
    world.play();
  }
  EXPECT_EQ(world.devices(other), std::vector<int>{3});
  EXPECT_TRUE(world.left_over().empty());
  EXPECT_TRUE(world.without_lease().empty());
}

TEST(Desk, parts_by_memory_share_a_gpu_until_its_memory_is_taken) {
  World world;
  world.add_node("n1", 1);
  const std::string a = world.add_shared("a", 0, 30 * 1024);
  const std::string b = world.add_shared("b", 0, 40 * 1024);
  const std::string c = world.add_shared("c", 100, 20 * 1024);
  world.play();
  EXPECT_EQ(world.pod(a).node_name + world.pod(b).node_name, "n1n1");
  EXPECT_EQ(world.pod(c).node_name, "") << "80 GiB are not enough for 90";
  const std::vector<GpuHolder>& holders = world.leases().at("gpu-n1-0").holders;
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[0].milli, 375);
  EXPECT_EQ(holders[0].memory_mib, 30 * 1024);
  EXPECT_EQ(holders[1].milli, 500);
  world.remove_pod(a);
  world.play();
  EXPECT_EQ(world.pod(c).node_name, "n1");
  EXPECT_TRUE(world.left_over().empty());
}

TEST(Desk, two_schedulers_at_once_do_not_take_more_memory_than_a_gpu_has) {
  World world(2, false);
  world.add_node("n1", 1);
  for (int i = 0; i < 6; ++i) world.add_shared("p" + std::to_string(i), 10, 20 * 1024);
  world.advance(seconds(90));
  EXPECT_EQ(world.standing().size(), 4U);
  EXPECT_EQ(world.leases().at("gpu-n1-0").holders.size(), 4U);
}

TEST(Desk, another_configuration_holds_at_once) {
  World world;
  world.add_node("n1", 2);
  const std::string uid = world.add_pod("a", 2, {}, 0, "late-scheduler");
  world.play();
  EXPECT_EQ(world.pod(uid).node_name, "");
  world.configure({"zone"}, {"gpu-scheduler", "late-scheduler"});
  world.play();
  EXPECT_EQ(world.pod(uid).node_name, "n1");
  world.configure({"spine", "leaf"}, {"gpu-scheduler"});
  world.play();
  EXPECT_EQ(world.pod(uid).node_name, "n1") << "what runs, runs";
}

TEST(Desk, a_node_that_comes_back_brings_its_pods) {
  World world;
  world.add_node("n1", 2);
  const std::string first = world.add_pod("first", 2);
  world.play();
  world.remove_node("n1");
  world.play();
  world.add_node("n1", 2);
  const std::string second = world.add_pod("second", 1);
  world.advance(seconds(2));
  EXPECT_EQ(world.pod(first).node_name, "n1");
  ASSERT_TRUE(world.told().contains(second));
  EXPECT_NE(world.told().at(second).message.find("0 free GPUs"), std::string::npos)
      << world.told().at(second).message;
}

TEST(Desk, a_name_that_is_ours_no_more_is_served_no_more) {
  World world;
  world.add_node("n1", 2);
  const std::string runs = world.add_pod("runs", 2);
  world.play();
  const std::string waits = world.add_pod("waits", 2);
  world.play();
  world.configure({}, {"topology-aware-scheduler"});
  world.remove_pod(runs);
  world.play();
  EXPECT_EQ(world.pod(waits).node_name, "") << "another scheduler may have it now";
  world.configure({}, {"gpu-scheduler"});
  world.play();
  EXPECT_EQ(world.pod(waits).node_name, "n1");
}

TEST(Desk, a_pod_that_waits_is_asked_again_when_it_is_changed) {
  World world;
  world.add_node("n1", 2);
  const std::string first = world.add_pinned("first", "n1", {0}, "one");
  world.play();
  const std::string second = world.add_pinned("second", "n1", {0}, "two");
  world.play();
  EXPECT_EQ(world.pod(second).node_name, "");
  world.annotate(second, "test/pin", "n1:1");
  world.play();
  EXPECT_EQ(world.devices(second), std::vector<int>{1});
  world.annotate(first, "test/pin", "n1:1");
  world.play();
  EXPECT_EQ(world.devices(first), std::vector<int>{0}) << "what runs, runs";
}

TEST(Desk, devices_are_named_as_the_configuration_in_force_says) {
  World world;
  world.add_node("n1", 4);
  const auto devices_of_new_pod = [&](const char* name) {
    const std::string uid = world.add_pod(name, 2);
    world.play();
    return *world.pod(uid).meta.annotation(kVisibleDevicesAnnotation);
  };
  EXPECT_EQ(devices_of_new_pod("a"), "0,1");
  world.configure({"spine", "leaf"}, {"gpu-scheduler"}, DeviceNaming::Uuid);
  EXPECT_EQ(devices_of_new_pod("b"), "n1-2,n1-3");
}

TEST(Desk, somebody_elses_lease_sends_the_pod_elsewhere) {
  World world(1, false);
  world.add_node("n1", 1);
  world.add_node("n2", 1);
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "another-scheduler");
  world.take_lease("n1", 0, {theirs, kWholeGpu, 0, {}, {}, {}},
                   false);  // our watch has not brought it yet
  const std::string a = world.add_pod("a", 1);
  const std::string b = world.add_pod("b", 1);
  world.play();
  EXPECT_TRUE((world.pod(a).node_name == "n2") != (world.pod(b).node_name == "n2"));
  EXPECT_TRUE(world.pod(a).node_name.empty() || world.pod(b).node_name.empty());
  world.advance(seconds(30));  // they never bound it: the lease is broken through the pod
  EXPECT_FALSE(world.pod(a).node_name.empty() || world.pod(b).node_name.empty());
}

TEST(Desk, a_lease_counts_when_its_node_comes_after_it) {
  World world(1, false);
  world.add_node("n1-0", 1);  // its lease has a name that begins as those of n1 do
  world.play();
  const std::string theirs = world.add_pod("theirs", 1, {}, 0, "another-scheduler");
  world.take_lease("n1", 0, {theirs, kWholeGpu, 0, {}, {}, {}}, true);
  world.play();
  world.add_node("n1", 1);
  const std::string a = world.add_pod("a", 1);
  const std::string b = world.add_pod("b", 1);
  world.play();
  EXPECT_EQ(world.pod(a).node_name, "n1-0");
  EXPECT_EQ(world.pod(b).node_name, "") << "somebody may be about to bind a pod there";
  world.advance(seconds(30));
  EXPECT_EQ(world.pod(b).node_name, "n1");
}

// The desk by itself: the test says what comes of its orders, and when.
class DeskAlone : public testing::Test {
 protected:
  DeskAlone() : desk_(DeskOptions{}, [this](const Pod&) { return ask_; }) {
    ask_.tenant = "team";
    ask(TaskRequest{});
    gs::Node node;
    node.name = "n1";
    node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    node.gpus.resize(2);
    node.gpus[1].index = 1;
    set_label(node.labels, "kubernetes.io/hostname", "n1");
    desk_.begin(Instant{1000});
    GpuTenant team;
    team.meta.name = team.meta.uid = team.tenant.id = "team";
    desk_.put(team);
    desk_.put_node(std::make_shared<const gs::Node>(node), {});
    desk_.synced();
  }

  // What pods ask for from now on: one GPU, and this.
  void ask(TaskRequest request) {
    request.gpu.count = 1;
    ask_.request = SharedRequest(std::move(request));
  }
  static Pod pod(const std::string& name, const std::string& app = {}) {
    Pod pod;
    pod.meta.name = pod.meta.uid = name;
    pod.meta.ns = "default";
    pod.scheduler_name = "gpu-scheduler";
    set_label(pod.meta.labels, "app", app);
    return pod;
  }
  // Of GPU 0, which pods of one map share.
  void put_lease(const std::vector<std::string>& holders) {
    Lease lease;
    lease.meta.name = gpu_lease_name("n1", 0);
    lease.meta.uid = "lease-1";
    lease.node = "n1";
    lease.gpu = 0;
    lease.holder = holders.front();
    for (const std::string& uid : holders)
      lease.holders.push_back({uid, kWholeGpu, 0, {}, "map", {}});
    desk_.put(lease);
  }
  std::vector<Order> turn() {
    desk_.begin(desk_.now() + milliseconds(10));
    desk_.cycle();
    return desk_.take();
  }
  std::optional<Bind> place_gang_of_two() {  // pods a and b
    ask_.gang = "default/ring";
    ask_.gang_size = 2;
    desk_.put(pod("a"));
    desk_.put(pod("b"));
    return first<Bind>(turn());
  }
  Bind bind_instance() {  // for pod a, of the only GPU of node "cut"
    gs::Node node;
    node.name = "cut";
    node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    node.gpus.resize(1);
    node.gpus[0].memory_mib = 81920;
    node.gpus[0].mig_enabled = true;
    node.gpus[0].mig = {{"3g.40gb", 0}};
    desk_.put_node(std::make_shared<const gs::Node>(node), {});
    TaskRequest instance;
    instance.gpu.sharing = Sharing::Mig;
    instance.gpu.mig = {{"3g.40gb", 1}};
    ask_.request = SharedRequest(instance);
    desk_.put(pod("a"));
    const auto bind = first<Bind>(turn());
    EXPECT_TRUE(bind && bind->pods[0].mig.size() == 1);
    return bind.value();
  }
  template <typename T>
  static std::optional<T> first(const std::vector<Order>& orders) {
    for (const Order& order : orders)
      if (const T* found = std::get_if<T>(&order)) return *found;
    return std::nullopt;
  }

  PodAsk ask_;
  Desk desk_;
};

TEST_F(DeskAlone, a_shared_lease_is_not_removed_unseen_because_it_was_taken) {
  TaskRequest pinned;
  pinned.only_nodes = {"n1"};
  pinned.gpu.pinned_ids = {0};
  pinned.gpu.pin_group = "map";
  ask(pinned);
  desk_.put(pod("a"));
  const auto first_bind = first<Bind>(turn());
  ASSERT_TRUE(first_bind);
  put_lease({"a"});
  desk_.done({first_bind->id, {{first_bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
  desk_.put(pod("b"));
  const auto next = first<Bind>(turn());
  ASSERT_TRUE(next);
  put_lease({"a", "b"});  // by another scheduler, which binds b itself
  desk_.done({next->id, {{next->pods[0].pod, BindFailure::LeaseTaken, 0, "a", {}}}});
  desk_.remove_pod("a");
  const auto release = first<Release>(desk_.take());
  ASSERT_TRUE(release);
  EXPECT_EQ(release->holder.uid, "a");
  EXPECT_EQ(release->lease_uid, "") << "b may be in it";
}

TEST_F(DeskAlone, what_a_pod_refers_to_counts_while_it_waits) {
  desk_.put(pod("a"));
  TaskRequest more;
  more.gpu.count = 5;
  ask_.request = SharedRequest(more);
  desk_.reconsider("a");
  EXPECT_FALSE(first<Bind>(turn())) << "its claim wants more than there is now";
  ask_.waits_for = "its claim is gone";
  desk_.reconsider("a");
  EXPECT_FALSE(first<Bind>(turn()));
  const Result<Explanation> known = desk_.explain("a");
  ASSERT_TRUE(known && known->why);
  EXPECT_EQ(known->why->sentence, "its claim is gone");
  EXPECT_EQ(known->why->constraint, Constraint::Held) << "no job that ends lets it start";
  ask_.waits_for.clear();
  ask(TaskRequest{});
  desk_.reconsider("a");
  EXPECT_TRUE(first<Bind>(turn()));
}

TEST_F(DeskAlone, labels_of_a_pod_count_while_it_waits) {
  TaskRequest more;
  more.gpu.count = 5;
  ask_.request = SharedRequest(more);
  desk_.put(pod("a"));
  EXPECT_FALSE(first<Bind>(turn()));
  ask(TaskRequest{});  // as its PodGroup or its line of a map says, which a label names
  desk_.put(pod("a", "other"));
  EXPECT_TRUE(first<Bind>(turn()));
}

TEST_F(DeskAlone, words_that_are_not_true_any_more_are_taken_back) {
  const auto waits = [&](const std::string& name) {
    TaskRequest more;
    more.gpu.count = 5;
    ask_.request = SharedRequest(more);
    desk_.put(pod(name));
    (void)turn();
    desk_.begin(desk_.now() + seconds(1));
    const auto words = first<Tell>(desk_.take());
    EXPECT_TRUE(words && words->pod.uid == name);
  };
  const auto retracted = [&] {
    const auto order = first<Retract>(desk_.take());
    return order ? order->uid : std::string{};
  };
  waits("a");
  desk_.remove_pod("a");
  EXPECT_EQ(retracted(), "a");
  waits("b");
  Pod elsewhere = pod("b");
  elsewhere.node_name = "n1";
  desk_.put(elsewhere);
  EXPECT_EQ(retracted(), "b");
  desk_.put(elsewhere);
  EXPECT_EQ(retracted(), "") << "once is enough";
  desk_.remove_pod("b");
  waits("c");
  ask(TaskRequest{});
  desk_.reconsider("c");
  const std::vector<Order> orders = turn();
  EXPECT_TRUE(first<Bind>(orders));
  EXPECT_TRUE(first<Retract>(orders)) << "it is on its way";
}

TEST_F(DeskAlone, a_pod_that_was_not_bound_after_all_is_told_again_why_it_waits) {
  for (const bool shown : {false, true}) {
    TaskRequest more;
    more.gpu.count = 5;
    ask_.request = SharedRequest(more);
    Pod a = pod("a", shown ? "shown" : "");
    desk_.put(a);
    (void)turn();
    desk_.begin(desk_.now() + seconds(1));
    const auto words = first<Tell>(desk_.take());
    ASSERT_TRUE(words);
    if (shown) {
      a.scheduled = false;
      a.scheduled_reason = words->reason;
      a.scheduled_message = words->message;
    }
    ask(TaskRequest{});
    desk_.put(a);
    desk_.reconsider("a");
    const auto bind = first<Bind>(turn());
    ASSERT_TRUE(bind);
    ask_.request = SharedRequest(more);
    desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::PodChanged, -1, {}, {}}}});
    desk_.reconsider("a");
    (void)turn();
    desk_.begin(desk_.now() + milliseconds(200));
    const std::vector<Order> orders = desk_.take();
    EXPECT_EQ(first<Tell>(orders).has_value(), !shown) << "its condition may be there";
    EXPECT_EQ(first<Note>(orders).has_value(), shown) << "its event may have been dropped";
    desk_.remove_pod("a");
  }
}

TEST_F(DeskAlone, the_event_of_a_pod_that_waits_is_repeated_before_the_server_forgets_it) {
  TaskRequest more;
  more.gpu.count = 5;
  ask_.request = SharedRequest(more);
  desk_.put(pod("a"));
  (void)turn();
  int conditions = 0, events = 0;
  for (int minute = 0; minute < 120; ++minute) {
    desk_.begin(desk_.now() + minutes(1));
    for (const Order& order : desk_.take()) {
      conditions += std::holds_alternative<Tell>(order);
      if (const auto* note = std::get_if<Note>(&order)) {
        ++events;
        EXPECT_TRUE(note->warning && note->again);
        EXPECT_EQ(note->reason, "FailedScheduling");
      }
    }
  }
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(events, 3);
}

TEST_F(DeskAlone, a_nomination_that_the_engine_gives_up_is_taken_back) {
  TaskRequest two;
  two.gpu.count = 2;
  ask_.request = SharedRequest(two);
  desk_.put(pod("lesser"));
  const auto bind = first<Bind>(turn());
  ASSERT_TRUE(bind);
  desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
  ask_.priority = 1000;
  desk_.put(pod("greater"));
  ASSERT_TRUE(first<Evict>(turn()));
  desk_.begin(desk_.now() + seconds(1));
  auto words = first<Tell>(desk_.take());
  ASSERT_TRUE(words);
  ASSERT_EQ(words->nominated_node, "n1");
  desk_.remove_node("n1");
  desk_.begin(desk_.now() + minutes(1));
  words = first<Tell>(turn());
  ASSERT_TRUE(words);
  EXPECT_EQ(words->nominated_node, "");
}

TEST_F(DeskAlone, a_gang_that_met_a_lease_on_its_way_out_waits_as_a_whole) {
  const auto bind = place_gang_of_two();
  ASSERT_TRUE(bind);
  desk_.done({bind->id,
              {{bind->pods[0].pod, BindFailure::LeaseTaken, 0, "gone", {}},
               {bind->pods[1].pod, BindFailure::Sibling, -1, {}, {}}}});
  EXPECT_FALSE(first<Bind>(turn())) << "the lease is there for a moment longer";
  desk_.begin(desk_.now() + seconds(2));
  EXPECT_TRUE(first<Bind>(turn()));
}

TEST_F(DeskAlone, a_member_of_a_running_gang_that_met_a_lease_on_its_way_out_waits_too) {
  const auto bind = place_gang_of_two();
  ASSERT_TRUE(bind);
  desk_.done({bind->id,
              {{bind->pods[0].pod, BindFailure::None, -1, {}, {}},
               {bind->pods[1].pod, BindFailure::None, -1, {}, {}}}});
  desk_.remove_pod("b");
  desk_.put(pod("c"));
  const auto next = first<Bind>(turn());
  ASSERT_TRUE(next);
  const int gpu = next->pods[0].gpus[0];
  desk_.done({next->id, {{next->pods[0].pod, BindFailure::LeaseTaken, gpu, "gone", {}}}});
  EXPECT_FALSE(first<Bind>(turn()));
  EXPECT_FALSE(first<Bind>(turn())) << "the engine would go on at full speed";
  desk_.begin(desk_.now() + seconds(2));
  EXPECT_TRUE(first<Bind>(turn()));
}

TEST_F(DeskAlone, a_node_may_go_while_a_pod_is_being_bound_to_it) {
  desk_.put(pod("a"));
  const auto bind = first<Bind>(turn());
  ASSERT_TRUE(bind);
  desk_.remove_node("n1");
  EXPECT_FALSE(first<Bind>(turn()));
  desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::NodeGone, -1, {}, {}}}});
  EXPECT_FALSE(first<Bind>(turn()));
  EXPECT_FALSE(desk_.engine().cluster().find_node("n1").valid() &&
               !desk_.engine().cluster().node(desk_.engine().cluster().find_node("n1")).gone);
}

// Another life of ours took it for this pod, and died before it could bind the pod.
TEST_F(DeskAlone, an_old_lease_of_a_pod_that_could_not_be_bound_is_looked_at_again) {
  desk_.put(pod("a"));
  const auto bind = first<Bind>(turn());
  ASSERT_TRUE(bind);
  put_lease({"a"});
  desk_.remove_pod("a");
  desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::PodGone, -1, {}, {}}}});
  EXPECT_FALSE(first<Release>(turn())) << "it may be one that is given back right now";
  desk_.begin(desk_.now() + DeskOptions{}.lease_patience);
  const auto release = first<Release>(desk_.take());
  ASSERT_TRUE(release);
  EXPECT_EQ(release->holder.uid, "a");
}

TEST_F(DeskAlone, who_is_refused_by_a_rightful_holder_waits_before_it_tries_again) {
  TaskRequest part;
  part.gpu.sharing = Sharing::Shared;
  part.gpu.milli = 400;
  ask(part);
  desk_.put(pod("a"));
  const auto first_bind = first<Bind>(turn());
  ASSERT_TRUE(first_bind);
  desk_.done({first_bind->id, {{first_bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
  desk_.put(pod("b"));
  const auto refused = first<Bind>(turn());
  ASSERT_TRUE(refused);
  ASSERT_EQ(refused->pods[0].gpus, first_bind->pods[0].gpus);
  const int gpu = refused->pods[0].gpus[0];
  desk_.done({refused->id, {{refused->pods[0].pod, BindFailure::LeaseTaken, gpu, "a", {}}}});
  EXPECT_FALSE(first<Bind>(turn())) << "nothing has changed since";
  desk_.begin(desk_.now() + seconds(2));
  EXPECT_TRUE(first<Bind>(turn()));
}

TEST_F(DeskAlone, a_bound_pod_is_told_where_it_is) {
  TaskRequest two;
  two.gpu.count = 2;
  ask_.request = SharedRequest(two);
  desk_.put(pod("a"));
  const auto bind = first<Bind>(turn());
  ASSERT_TRUE(bind);
  EXPECT_FALSE(first<Note>(turn())) << "it is not bound yet";
  desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
  const auto note = first<Note>(turn());
  ASSERT_TRUE(note);
  EXPECT_FALSE(note->warning);
  EXPECT_EQ(note->reason, "Scheduled");
  EXPECT_EQ(note->message, "Successfully assigned default/a to n1: GPUs 0,1");
}

TEST_F(DeskAlone, a_pod_that_has_an_instance_is_told_which) {
  const Bind bind = bind_instance();
  desk_.done({bind.id, {{bind.pods[0].pod, BindFailure::None, -1, {}, {}}}});
  const auto note = first<Note>(turn());
  ASSERT_TRUE(note);
  EXPECT_EQ(note->message, "Successfully assigned default/a to cut: 3g.40gb of GPU 0");
}

TEST_F(DeskAlone, the_lease_of_an_instance_that_is_being_bound_is_right) {
  const Bind bind = bind_instance();
  Lease lease;
  lease.meta.name = gpu_lease_name("cut", 0);
  lease.node = "cut";
  lease.gpu = 0;
  lease.holders = {shares_of(bind.pods[0]).at(0)};
  desk_.put(lease);
  desk_.begin(desk_.now() + seconds(30));  // and the Bind has no result yet
  EXPECT_FALSE(first<Break>(turn()));
}

TEST_F(DeskAlone, who_goes_while_it_is_being_bound_is_no_company) {
  desk_.put(pod("database", "db"));
  EXPECT_TRUE(first<Bind>(turn()));
  desk_.remove_pod("database");  // its Bind has no result yet
  Pod follower = pod("follower", "web");
  PodTerm near;
  near.selector = LabelSelector{{{"app", LabelOp::In, {"db"}}}};
  near.topology_key = "kubernetes.io/hostname";
  follower.pod_affinity.required = {near};
  desk_.put(follower);
  EXPECT_FALSE(first<Bind>(turn())) << "there is nobody to lie beside";
}

TEST(Desk, a_lost_member_of_a_gang_is_bound_anew_when_its_pod_is_made_again) {
  World world;
  for (const char* name : {"n1", "n2", "n3"}) world.add_node(name, 4);
  const std::string a = world.add_pod("a", 4, "ring", 2);
  const std::string b = world.add_pod("b", 4, "ring", 2);
  world.play();
  const std::string lost = world.pod(b).node_name;
  world.set_ready(lost, false);
  world.play();
  EXPECT_TRUE(world.pod(b).meta.deleted.has_value());
  world.remove_pod(b);
  const std::string again = world.add_pod("b2", 4, "ring", 2);
  world.play();
  if (!world.exists(a)) {
    const std::string a_again = world.add_pod("a2", 4, "ring", 2);
    world.play();
    EXPECT_NE(world.pod(a_again).node_name, "");
  }
  EXPECT_NE(world.pod(again).node_name, "");
  EXPECT_NE(world.pod(again).node_name, lost);
}

}  // namespace
}  // namespace gs::kube
