// The status of claims at the desk: what it shows is put right, whoever wrote it and whenever.
#include <optional>

#include <gtest/gtest.h>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

// A pod "p" that uses claim "c", and a node with room for it.
class ClaimsAtTheDesk : public testing::Test {
 protected:
  ClaimsAtTheDesk() : desk_(DeskOptions{}, [](const Pod&) { return ask(); }) {
    gs::Node node;
    node.name = "n1";
    node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    node.gpus.resize(1);
    desk_.begin(Instant{1'000'000});
    desk_.put_node(std::make_shared<const gs::Node>(node), {});
  }

  static PodAsk ask() {
    PodAsk ask;
    ask.tenant = "team";
    ask.claim = "c";
    TaskRequest request;
    request.gpu.count = 1;
    ask.request = SharedRequest(std::move(request));
    return ask;
  }
  void add_pod() {
    Pod pod;
    pod.meta.name = pod.meta.uid = "p";
    pod.meta.ns = "ml";
    pod.scheduler_name = "gpu-scheduler";
    desk_.put(pod);
  }
  void show(const std::string& uid, ClaimStatus status) { desk_.put_claim("ml", "c", uid, status); }
  // What is told of the claim after so long; Binds are carried out.
  std::optional<ClaimStatus> told(Duration later = milliseconds(10)) {
    std::optional<ClaimStatus> last;
    desk_.begin(desk_.now() + later);
    for (int round = 0; round < 3; ++round) {
      desk_.cycle();
      for (const Order& order : desk_.take()) {
        if (const auto* claim = std::get_if<TellClaim>(&order)) last = claim->status;
        if (const auto* bind = std::get_if<Bind>(&order))
          desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
      }
    }
    return last;
  }
  static ClaimStatus bound_elsewhere() {
    return claim_status(ClaimPhase::Bound, {{"old", "n9", {3}, {}}}, "allocated");
  }

  Desk desk_;
};

TEST_F(ClaimsAtTheDesk, a_claim_whose_pod_went_unseen_is_free_again) {
  show("u1", bound_elsewhere());
  EXPECT_FALSE(told()) << "who stands by says nothing";
  desk_.synced();
  const auto status = told();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->phase, ClaimPhase::Pending);
  EXPECT_EQ(status->allocated, "");
  show("u1", *status);
  EXPECT_FALSE(told(seconds(10)));
}

TEST_F(ClaimsAtTheDesk, a_claim_that_nobody_has_used_is_left_alone) {
  desk_.synced();
  show("u1", {});
  EXPECT_FALSE(told());
}

TEST_F(ClaimsAtTheDesk, a_claim_made_anew_under_its_pod_is_told_again) {
  desk_.synced();
  show("u1", {});
  add_pod();
  const auto bound = told();
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->allocated, "n1:0");
  show("u1", *bound);
  desk_.remove_claim("ml", "c");
  EXPECT_FALSE(told()) << "there is nothing to write to";
  show("u2", {});
  EXPECT_EQ(told(), bound);
}

TEST_F(ClaimsAtTheDesk, our_own_words_that_come_late_are_not_answered) {
  desk_.synced();
  show("u1", {});
  add_pod();
  const auto bound = told();
  ASSERT_TRUE(bound);
  ClaimStatus reserved = *bound;
  reserved.phase = ClaimPhase::Reserved;
  show("u1", reserved);
  EXPECT_FALSE(told());
  show("u1", *bound);
  EXPECT_FALSE(told(seconds(10)));
}

TEST_F(ClaimsAtTheDesk, words_that_were_lost_are_said_again) {
  desk_.synced();
  show("u1", {});
  add_pod();
  const auto bound = told();
  ASSERT_TRUE(bound);
  EXPECT_FALSE(told(seconds(1))) << "they may be under way";
  EXPECT_EQ(told(seconds(5)), bound);
  show("u1", *bound);
  EXPECT_FALSE(told(seconds(10)));
}

TEST_F(ClaimsAtTheDesk, what_somebody_else_wrote_is_put_right) {
  desk_.synced();
  show("u1", {});
  add_pod();
  const auto bound = told();
  ASSERT_TRUE(bound);
  show("u1", bound_elsewhere());
  EXPECT_FALSE(told()) << "it may be older than our own";
  EXPECT_EQ(told(seconds(5)), bound);
}

}  // namespace
}  // namespace gs::kube
