// GpuTenants at the desk: whose limits hold for whom, in whatever order they come and go, and what
// their status says of it.
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

// A node with four GPUs, and pods of one GPU each. A pod's tenant is its namespace, or what
// belongs_to_ says.
class TenantsAtTheDesk : public testing::Test {
 protected:
  TenantsAtTheDesk() : desk_(DeskOptions{}, [this](const Pod& pod) { return ask(pod); }) {
    gs::Node node;
    node.name = "n1";
    node.capacity = {64'000, 512 * 1024 * kMiB, {{"pods", 110}}};
    node.gpus.resize(4);
    for (int i = 0; i < 4; ++i) node.gpus[static_cast<std::size_t>(i)].index = i;
    desk_.begin(Instant{1'000'000});
    desk_.put_node(std::make_shared<const gs::Node>(node), {});
  }

  PodAsk ask(const Pod& pod) const {
    PodAsk ask;
    const auto it = belongs_to_.find(pod.meta.ns);
    ask.tenant = it == belongs_to_.end() ? pod.meta.ns : it->second;
    TaskRequest request;
    request.gpu.count = 1;
    ask.request = SharedRequest(std::move(request));
    return ask;
  }
  void put(const std::string& name, const std::string& parent, int max_gpus) {
    GpuTenant tenant;
    tenant.meta.name = tenant.meta.uid = tenant.tenant.id = name;
    tenant.tenant.parent = parent;
    tenant.tenant.limit.gpu_milli = max_gpus * kWholeGpu;
    tenant.spec_text = parent + std::to_string(max_gpus);
    tenant.status = shown_[name];
    desk_.put(tenant);
    for (const auto& [uid, pod] : pods_) desk_.reconsider(uid);
  }
  std::string add_pod(const std::string& ns) {
    Pod pod;
    pod.meta.name = pod.meta.uid = "p" + std::to_string(pods_.size());
    pod.meta.ns = ns;
    pod.scheduler_name = "gpu-scheduler";
    pods_[pod.meta.uid] = pod;
    desk_.put(pod);
    return pod.meta.uid;
  }
  void remove_pod(const std::string& uid) {
    desk_.remove_pod(uid);
    pods_.erase(uid);
  }
  // Some seconds, in which what is ordered is done.
  void play() {
    for (int round = 0; round < 5; ++round) {
      desk_.begin(desk_.now() + seconds(1));
      if (desk_.wants_cycle()) desk_.cycle();
      for (const Order& order : desk_.take()) {
        if (const auto* bind = std::get_if<Bind>(&order)) {
          pods_.at(bind->pods[0].pod.uid).node_name = bind->pods[0].node;
          desk_.done({bind->id, {{bind->pods[0].pod, BindFailure::None, -1, {}, {}}}});
        }
        if (const auto* words = std::get_if<Tell>(&order)) told_[words->pod.uid] = words->message;
        if (const auto* tenant = std::get_if<TellTenant>(&order)) {
          shown_[tenant->name] = tenant->status;
          ++writes_;
          news_ += tenant->is_news ? 1 : 0;
        }
      }
    }
  }
  bool runs(const std::string& uid) const { return !pods_.at(uid).node_name.empty(); }

  std::map<std::string, std::string> belongs_to_;
  Desk desk_;
  std::map<std::string, Pod> pods_;
  std::map<std::string, std::string> told_;
  std::map<std::string, TenantStatus> shown_;
  int writes_ = 0, news_ = 0;
};

TEST_F(TenantsAtTheDesk, a_tenant_waits_for_its_parent_and_its_pods_with_it) {
  put("team", "org", 1);
  desk_.synced();
  const std::string a = add_pod("team"), b = add_pod("team");
  play();
  EXPECT_FALSE(runs(a) || runs(b)) << "without its limits it would get too much";
  EXPECT_EQ(told_[a], "tenant team is not accepted: there is no GpuTenant org, its parent");
  EXPECT_FALSE(shown_["team"].accepted);
  EXPECT_EQ(shown_["team"].message, "there is no GpuTenant org, its parent");
  put("org", "", 4);
  play();
  EXPECT_TRUE(shown_["team"].accepted && shown_["org"].accepted);
  EXPECT_EQ(shown_["org"].message, "in force");
  EXPECT_NE(runs(a), runs(b)) << "one GPU at most";
}

TEST_F(TenantsAtTheDesk, parents_in_a_ring_are_refused) {
  put("a", "b", 1);
  put("b", "a", 1);
  desk_.synced();
  play();
  EXPECT_FALSE(shown_["a"].accepted || shown_["b"].accepted);
  EXPECT_EQ(shown_["a"].message, "its parent b is not accepted");
}

TEST_F(TenantsAtTheDesk, a_changed_limit_holds_at_once) {
  desk_.synced();
  put("team", "", 1);
  const std::string a = add_pod("team"), b = add_pod("team");
  play();
  EXPECT_NE(runs(a), runs(b));
  put("team", "", 2);
  play();
  EXPECT_TRUE(runs(a) && runs(b));
}

TEST_F(TenantsAtTheDesk, a_deleted_tenant_limits_nobody) {
  desk_.synced();
  put("team", "", 1);
  const std::string a = add_pod("team"), b = add_pod("team");
  play();
  EXPECT_NE(runs(a), runs(b));
  desk_.remove_tenant("team");
  play();
  EXPECT_TRUE(runs(a) && runs(b));
  remove_pod(a);
  remove_pod(b);
  play();
  const Cluster& cluster = desk_.engine().cluster();
  EXPECT_TRUE(cluster.tenant(cluster.find_tenant("team")).gone) << "nobody uses it any more";
  const std::string c = add_pod("team");
  play();
  EXPECT_TRUE(runs(c));
}

TEST_F(TenantsAtTheDesk, without_its_parent_a_tenant_takes_nobody_in) {
  desk_.synced();
  put("org", "", 4);
  put("team", "org", 4);
  play();
  desk_.remove_tenant("org");
  const std::string a = add_pod("team");
  play();
  EXPECT_FALSE(runs(a));
  EXPECT_FALSE(shown_["team"].accepted);
  put("org", "", 4);
  play();
  EXPECT_TRUE(runs(a));
  EXPECT_TRUE(shown_["team"].accepted);
}

TEST_F(TenantsAtTheDesk, another_parent_counts_when_the_last_pod_has_gone) {
  desk_.synced();
  put("org", "", 1);
  put("team", "", 4);
  const std::string a = add_pod("team");
  play();
  put("team", "org", 1);
  const std::string b = add_pod("team");
  play();
  EXPECT_FALSE(runs(b)) << "its own limit is another one already";
  EXPECT_FALSE(shown_["team"].accepted);
  EXPECT_NE(shown_["team"].message.find("it goes below org when no pod is left"), std::string::npos)
      << shown_["team"].message;
  remove_pod(a);
  remove_pod(b);
  play();
  EXPECT_TRUE(shown_["team"].accepted) << shown_["team"].message;
  const Cluster& cluster = desk_.engine().cluster();
  EXPECT_EQ(cluster.tenant(cluster.find_tenant("team")).spec.parent, "org");
}

TEST_F(TenantsAtTheDesk, the_status_tells_what_is_used_and_how_many_wait) {
  put("team", "", 1);
  play();
  EXPECT_EQ(writes_, 0) << "who stands by says nothing";
  desk_.synced();
  add_pod("team");
  add_pod("team");
  play();
  EXPECT_EQ(shown_["team"].used_gpu_milli, kWholeGpu);
  EXPECT_EQ(shown_["team"].waiting_jobs, 1);
  const int before = writes_;
  EXPECT_EQ(news_, 1) << "figures are no news";
  put("team", "", 1);  // what was told comes back
  play();
  play();
  EXPECT_EQ(writes_, before);
  shown_["team"].message = "somebody else's words";
  put("team", "", 1);
  play();
  EXPECT_EQ(shown_["team"].message, "in force");
}

TEST_F(TenantsAtTheDesk, one_that_can_not_be_read_is_told_so) {
  desk_.synced();
  desk_.put_broken_tenant("team", "team", "spec.weight must be 0..1");
  const std::string a = add_pod("team");
  play();
  EXPECT_EQ(shown_["team"].message, "spec.weight must be 0..1");
  EXPECT_FALSE(runs(a));
  put("team", "", 1);
  play();
  EXPECT_TRUE(runs(a));
}

TEST_F(TenantsAtTheDesk, who_waits_goes_over_when_its_namespace_does) {
  desk_.synced();
  put("small", "", 0);
  put("large", "", 4);
  belongs_to_["ml"] = "small";
  const std::string a = add_pod("ml");
  play();
  EXPECT_FALSE(runs(a));
  belongs_to_["ml"] = "large";
  desk_.reconsider(a);
  play();
  EXPECT_TRUE(runs(a));
}

TEST_F(TenantsAtTheDesk, a_tenant_called_others_is_one_like_others) {
  desk_.synced();
  put("others", "", 1);
  Pod theirs;
  theirs.meta.name = theirs.meta.uid = "theirs";
  theirs.meta.ns = "somewhere";
  theirs.scheduler_name = "default-scheduler";
  theirs.node_name = "n1";
  set_label(theirs.meta.annotations, "gpu.scheduling/allocated", "n1:0,1");
  desk_.put(theirs);
  const std::string a = add_pod("others");
  play();
  EXPECT_TRUE(runs(a)) << "pods of other schedulers are not on its bill";
  EXPECT_EQ(shown_["others"].used_gpu_milli, kWholeGpu);
}

}  // namespace
}  // namespace gs::kube
