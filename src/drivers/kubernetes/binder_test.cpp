#include "drivers/kubernetes/binder.hpp"

#include <map>

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/storage.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

constexpr std::uint64_t kMany = 300;  // more than are worked on at once

Bind order_of(std::uint64_t id) {
  PodPlace place;
  place.pod = {"ml", "pod-" + std::to_string(id), "uid-" + std::to_string(id)};
  place.node = "n1";
  place.gpus = {0};
  return {id, {std::move(place)}};
}

// A binder without leases on a client of its own, and how often each order was answered.
class Bound {
 public:
  explicit Bound(ApiServer& server) : client(server.access()) {
    client.loop.post([this] {
      binder = std::make_unique<Binder>(
          *client.api, BinderOptions{false, "gpu-scheduler", "us"}, [] { return Instant{1}; },
          [this](const BindDone& done) {
            const std::lock_guard lock(mutex);
            ++answers[done.id];
          },
          [](const std::string&) {});
    });
  }
  ~Bound() {
    std::atomic<bool> gone = false;
    client.loop.post([&] {
      binder.reset();
      gone = true;
    });
    EXPECT_TRUE(comes_true([&] { return gone.load(); }));
  }
  void evict(const std::string& pod) {
    client.loop.post([this, pod] { binder->evict({{"ml", pod, "uid-" + pod}, "Preempted", ""}); });
  }
  void order(Bind order) {
    client.loop.post([this, order = std::move(order)] { binder->bind(order); });
  }
  std::map<std::uint64_t, int> answered() {
    const std::lock_guard lock(mutex);
    return answers;
  }

  std::mutex mutex;
  std::map<std::uint64_t, int> answers;
  std::unique_ptr<Binder> binder;
  Client client;
};

TEST(Binder, each_of_many_orders_gets_one_answer) {
  ApiServer server(
      [](const HttpRequest&, Exchange& exchange) { exchange.answer(answer(201, "{}")); });
  Bound bound(server);
  for (std::uint64_t id = 1; id <= kMany; ++id) bound.order(order_of(id));
  EXPECT_TRUE(comes_true([&] { return bound.answered().size() == kMany; }))
      << bound.answered().size();
  for (const auto& [id, times] : bound.answered()) EXPECT_EQ(times, 1) << id;
}

TEST(Binder, what_a_copied_pod_brings_along_is_not_left_to_it) {
  std::mutex mutex;
  std::vector<Json> bindings;
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    const std::lock_guard lock(mutex);
    bindings.push_back(parse_json(request.message.body()).value()["metadata"]["annotations"]);
    exchange.answer(answer(201, "{}"));
  });
  Bound bound(server);
  Bind copy = order_of(1);
  for (const char* name : kGivenAnnotations)
    set_label(copy.pods[0].annotations, name, "of another pod");
  set_label(copy.pods[0].annotations, "team", "a");
  Bind no_gpus = copy;
  no_gpus.id = 2;
  no_gpus.pods[0].gpus.clear();
  bound.order(copy);
  ASSERT_TRUE(comes_true([&] { return bound.answered().size() == 1; }));
  bound.order(no_gpus);
  ASSERT_TRUE(comes_true([&] { return bound.answered().size() == 2; }));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(bindings[0][kAllocatedAnnotation], "n1:0");
  EXPECT_EQ(bindings[0][kInstancesAnnotation], "");
  EXPECT_EQ(bindings[0].size(), std::size(kGivenAnnotations));
  for (const char* name : kGivenAnnotations) EXPECT_EQ(bindings[1][name], "") << name;
}

TEST(Binder, who_waits_for_a_volume_keeps_nobody_from_being_bound) {
  const std::string unbound = R"({"metadata":{"uid":"c1","annotations":{")" +
                              std::string(kSelectedNodeAnnotation) + R"(":"n1"}}})";
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    const bool claim = request.message.target().find("volumeclaims") != std::string::npos;
    exchange.answer(answer(claim ? 200 : 201, claim ? unbound : "{}"));
  });
  Bound bound(server);
  for (std::uint64_t id = 1; id <= kMany; ++id) {
    Bind waits = order_of(id);
    waits.pods[0].volumes = {{"data", "c1", {}, {}}};
    bound.order(std::move(waits));
  }
  bound.order(order_of(kMany + 1));
  EXPECT_TRUE(comes_true([&] { return bound.answered().contains(kMany + 1); }));
  EXPECT_EQ(bound.answered().size(), 1U);
}

TEST(Binder, a_disruption_budget_that_says_no_is_asked_again_and_who_has_gone_is_not) {
  std::mutex mutex;
  std::map<std::string, std::vector<Json>> asked;
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    const std::lock_guard lock(mutex);
    std::vector<Json>& before = asked[request.path];
    before.push_back(parse_json(request.message.body()).value());
    if (request.path.ends_with("/gone/eviction")) return exchange.answer(refusal(404, "NotFound"));
    if (request.path.ends_with("/another/eviction"))
      return exchange.answer(refusal(409, "Conflict"));
    exchange.answer(before.size() > 1
                        ? answer(201, "{}")
                        : refusal(429, "TooManyRequests",
                                  R"(,"details":{"causes":[{"reason":"DisruptionBudget",
                                     "message":"The disruption budget train needs 2"}]})"));
  });
  const auto times = [&](const std::string& pod) {
    const std::lock_guard lock(mutex);
    return asked["/api/v1/namespaces/ml/pods/" + pod + "/eviction"].size();
  };
  Bound bound(server);
  for (const char* pod : {"kept", "kept", "gone", "another"}) bound.evict(pod);
  EXPECT_TRUE(comes_true([&] { return times("kept") == 2; })) << "after a second, and not twice";
  EXPECT_EQ(times("gone"), 1U);
  EXPECT_EQ(times("another"), 1U) << "a pod of that name, but not that one";
  EXPECT_TRUE(comes_true([&] {  // as soon as the answer before has arrived
    bound.evict("kept");
    return times("kept") > 2;
  })) << "it is there again";
  const std::lock_guard lock(mutex);
  for (const auto& [path, bodies] : asked)
    for (const Json& body : bodies)
      EXPECT_TRUE(body["deleteOptions"]["preconditions"]["uid"].is_string()) << body;
}

}  // namespace
}  // namespace gs::kube
