// A scheduler of another name leads beside us: its leases, and the claims of its pods, are its own.
#include <algorithm>

#include <gtest/gtest.h>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

class DeskBeside : public testing::Test {
 protected:
  DeskBeside() : desk_(elected(), [](const Pod&) { return PodAsk{}; }) {
    gs::Node node;
    node.name = "n1";
    node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    node.gpus.resize(2);
    node.gpus[1].index = 1;
    desk_.begin(Instant{1000});
    desk_.put_node(std::make_shared<const gs::Node>(node), {});
    desk_.synced();
  }

  static DeskOptions elected() {
    DeskOptions options;
    options.alone = true;
    return options;
  }
  static Pod pod(const std::string& name, const std::string& scheduler) {
    Pod pod;
    pod.meta.name = pod.meta.uid = name;
    pod.meta.ns = "default";
    pod.scheduler_name = scheduler;
    pod.gates = {"closed"};  // nothing is placed here
    set_label(pod.meta.annotations, kClaimAnnotation, "data");
    return pod;
  }
  void put_lease(const std::string& holder) {
    Lease lease;
    lease.meta.name = gpu_lease_name("n1", 0);
    lease.meta.uid = "lease-1";
    lease.node = "n1";
    lease.holder = holder;
    lease.gpu = 0;
    lease.holders = {{holder, kWholeGpu, 0, {}, {}, {}}};
    desk_.put(lease);
  }
  template <typename Kind>
  bool orders(Duration later) {
    desk_.begin(desk_.now() + later);
    desk_.cycle();
    const std::vector<Order> orders = desk_.take();
    return std::any_of(orders.begin(), orders.end(),
                       [](const Order& order) { return std::holds_alternative<Kind>(order); });
  }

  Desk desk_;
};

TEST_F(DeskBeside, the_lease_of_a_pod_that_another_is_about_to_bind_is_left_to_it) {
  desk_.put(pod("theirs", "team-b"));
  put_lease("theirs");
  EXPECT_FALSE(orders<Break>(seconds(5))) << "it had no time yet";
  EXPECT_TRUE(orders<Break>(seconds(6))) << "it has gone";
}

TEST_F(DeskBeside, the_lease_of_a_pod_of_ours_is_broken_at_once) {
  desk_.put(pod("ours", "gpu-scheduler"));
  put_lease("ours");
  EXPECT_TRUE(orders<Break>(milliseconds(10)));
}

TEST_F(DeskBeside, what_another_says_about_a_claim_stays_while_its_pods_use_it) {
  ClaimStatus bound;
  bound.phase = ClaimPhase::Bound;
  desk_.put(pod("theirs", "team-b"));
  desk_.put_claim("default", "data", "claim-1", bound);
  EXPECT_FALSE(orders<TellClaim>(seconds(10)));
  desk_.remove_pod("theirs");
  desk_.put_claim("default", "data", "claim-1", bound);
  EXPECT_TRUE(orders<TellClaim>(seconds(10))) << "nobody uses it";
}

}  // namespace
}  // namespace gs::kube
