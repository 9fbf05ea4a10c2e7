// What others have is not given out: devices, and instances of those that are cut by MIG.
#include <algorithm>

#include <gtest/gtest.h>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/instances.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/quantity.hpp"

namespace gs::kube {
namespace {

constexpr const char* kInstance = "nvidia.com/mig-3g.40gb";

// One node. Pods of ours whose name begins with "whole" ask for a GPU, others for an instance; what
// "gone" asked for can't be read any more.
class DeskOthers : public testing::Test {
 protected:
  DeskOthers() : desk_(without_leases(), [](const Pod& pod) { return ask_of(pod); }) {
    node_.name = "cut";
    node_.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    desk_.begin(Instant{1'000'000});
  }

  static DeskOptions without_leases() {
    DeskOptions options;
    options.leases = false;
    return options;
  }

  static PodAsk ask_of(const Pod& pod) {
    PodAsk ask;
    ask.tenant = "team";
    TaskRequest request;
    if (pod.meta.name.starts_with("whole")) {
      request.gpu.count = 1;
    } else {
      request.gpu.sharing = Sharing::Mig;
      request.gpu.mig = {{"3g.40gb", 1}};
    }
    if (pod.meta.name == "gone") ask.waits_for = "GpuClaim ml/c does not exist";
    if (pod.meta.name.starts_with("ring")) {
      ask.gang = "ml/ring";
      ask.gang_size = 2;
    }
    ask.request = SharedRequest(std::move(request));
    return ask;
  }

  void add_gpu(std::vector<MigInstance> instances) {
    Gpu& gpu = node_.gpus.emplace_back();
    gpu.index = static_cast<int>(node_.gpus.size()) - 1;
    gpu.memory_mib = 81'920;
    gpu.mig_enabled = !instances.empty();
    gpu.mig = std::move(instances);
  }

  void show_node(DevicesInUse in_use = {}) {
    desk_.put_node(std::make_shared<const gs::Node>(node_), std::move(in_use));
  }

  static Pod pod(const std::string& name) {
    Pod made;
    made.meta.name = made.meta.uid = name;
    made.meta.ns = "ml";
    made.scheduler_name = "gpu-scheduler";
    made.containers.emplace_back();
    return made;
  }

  static Pod theirs(const std::string& name, const char* resource, int count) {
    Pod made = pod(name);
    made.scheduler_name = "default-scheduler";
    made.node_name = "cut";
    made.containers[0].limits.push_back({resource, *parse_quantity(std::to_string(count))});
    return made;
  }

  // One of ours that is bound to an instance.
  static Pod bound(const std::string& name, const std::string& instance) {
    Pod made = pod(name);
    made.node_name = "cut";
    set_label(made.meta.annotations, kAllocatedAnnotation, "cut:" + instance.substr(0, 1));
    set_label(made.meta.annotations, kInstancesAnnotation, instance);
    return made;
  }

  // The places of what is bound now: "0" a GPU, "0:3g.40gb:4" an instance.
  std::vector<std::string> given() {
    desk_.cycle();
    std::vector<std::string> places;
    for (const Order& order : desk_.take())
      if (const auto* bind = std::get_if<Bind>(&order))
        for (const PodPlace& place : bind->pods) {
          for (const int gpu : place.gpus)
            if (place.mig.empty()) places.push_back(std::to_string(gpu));
          if (!place.mig.empty()) places.push_back(instances_text(place.mig));
        }
    std::sort(places.begin(), places.end());
    return places;
  }

  using Places = std::vector<std::string>;
  gs::Node node_;
  Desk desk_;
};

// The kubelet chose its device; the node's agent sees which.
TEST_F(DeskOthers, a_pod_has_the_device_that_the_agent_sees_it_use) {
  add_gpu({});
  add_gpu({});
  show_node();
  desk_.synced();
  desk_.put(theirs("theirs", "nvidia.com/gpu", 1));
  show_node({{"theirs", {0}}});
  for (const char* name : {"whole-one", "whole-other"}) desk_.put(pod(name));
  EXPECT_EQ(given(), Places{"1"});
}

TEST_F(DeskOthers, a_pod_whose_claim_is_gone_keeps_its_instance) {
  add_gpu({{"3g.40gb", 0}, {"3g.40gb", 4}});
  show_node();
  desk_.put(bound("gone", "0:3g.40gb:0"));
  desk_.synced();
  for (const char* name : {"one", "two"}) desk_.put(pod(name));
  EXPECT_EQ(given(), Places{"0:3g.40gb:4"}) << "one of two instances is taken";
}

TEST_F(DeskOthers, instances_of_another_schedulers_pods_are_counted) {
  add_gpu({{"3g.40gb", 0}, {"3g.40gb", 4}});
  show_node();
  desk_.put(theirs("theirs", kInstance, 1));
  desk_.synced();
  for (const char* name : {"one", "two"}) desk_.put(pod(name));
  EXPECT_EQ(given().size(), 1U) << "one of two instances is taken";
  desk_.remove_pod("theirs");
  EXPECT_EQ(given().size(), 1U) << "the other one is free now";
}

TEST_F(DeskOthers, who_has_several_instances_has_them_all) {
  add_gpu({{"3g.40gb", -1}, {"3g.40gb", -1}});
  add_gpu({{"3g.40gb", -1}});
  show_node();
  desk_.synced();
  desk_.put(theirs("theirs", kInstance, 2));
  for (const char* name : {"one", "two"}) desk_.put(pod(name));
  EXPECT_EQ(given().size(), 1U) << "two of three are taken";
}

TEST_F(DeskOthers, an_instance_is_on_the_gpu_that_the_agent_sees_in_use) {
  add_gpu({{"3g.40gb", 0}});
  add_gpu({{"3g.40gb", 0}});
  show_node();
  desk_.synced();
  desk_.put(theirs("theirs", kInstance, 1));
  show_node({{"theirs", {0}}});
  for (const char* name : {"one", "two"}) desk_.put(pod(name));
  EXPECT_EQ(given(), Places{"1:3g.40gb:0"});
}

TEST_F(DeskOthers, whole_gpus_are_not_sought_among_those_that_are_cut) {
  add_gpu({});
  add_gpu({{"3g.40gb", 0}, {"3g.40gb", 4}});
  show_node();
  desk_.synced();
  desk_.put(theirs("theirs", "nvidia.com/gpu", 1));
  for (const char* name : {"whole", "one", "two"}) desk_.put(pod(name));
  EXPECT_EQ(given(), (Places{"1:3g.40gb:0", "1:3g.40gb:4"})) << "the one whole GPU is taken";
}

// The node does not answer, so its gang starts over; when it answers again, they are still there.
TEST_F(DeskOthers, members_that_were_given_up_keep_their_instances) {
  add_gpu({{"3g.40gb", 0}, {"3g.40gb", 4}});
  show_node();
  desk_.put(bound("ring-0", "0:3g.40gb:0"));
  desk_.put(bound("ring-1", "0:3g.40gb:4"));
  desk_.synced();
  EXPECT_EQ(given(), Places{});
  node_.ready = false;
  show_node();
  EXPECT_EQ(given(), Places{});
  node_.ready = true;
  show_node();
  desk_.put(pod("late"));
  EXPECT_EQ(given(), Places{}) << "both are still in use";
  desk_.remove_pod("ring-0");
  EXPECT_EQ(given(), Places{"0:3g.40gb:0"});
}

// Whoever may make a pod writes what they like on it.
TEST_F(DeskOthers, what_others_write_about_devices_that_no_node_has_is_nothing) {
  add_gpu({});
  show_node();
  desk_.synced();
  for (const char* text : {"2147483584::0", "64::0", "64:3g.40gb:0", "0::0", "5:3g.40gb:0"}) {
    Pod odd = theirs(text, "cpu", 1);
    set_label(odd.meta.annotations, kInstancesAnnotation, text);
    set_label(odd.meta.annotations, kAllocatedAnnotation, "cut:5");
    desk_.put(odd);
  }
  Lease lease;
  lease.meta.name = "gpu-cut-9";
  lease.node = "cut";
  lease.gpu = 9;
  lease.holders.emplace_back().pod_uid = "nobody";
  desk_.put(lease);
  desk_.put(pod("whole"));
  EXPECT_EQ(given(), Places{"0"});
}

TEST_F(DeskOthers, instances_that_came_along_with_a_copied_pod_are_not_its_own) {
  add_gpu({});
  add_gpu({});
  show_node();
  Pod copy = bound("whole-copy", "0:3g.40gb:0");
  set_label(copy.meta.annotations, kAllocatedAnnotation, "cut:1");
  desk_.put(copy);
  desk_.synced();
  for (const char* name : {"whole-one", "whole-other"}) desk_.put(pod(name));
  EXPECT_EQ(given(), Places{"0"}) << "the copy has GPU 1";
}

}  // namespace
}  // namespace gs::kube
