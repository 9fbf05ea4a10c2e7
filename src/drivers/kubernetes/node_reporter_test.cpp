#include "drivers/kubernetes/node_reporter.hpp"

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"
#include "drivers/kubernetes/node_pods.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/node_status.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

constexpr const char* kNode = R"({"metadata":{"name":"node-a","uid":"n-1"}})";
constexpr const char* kBase = "/apis/gpu.scheduling/v1/gpunodestatuses/node-a";

GpuNodeStatus two_gpus() {
  GpuNodeStatus status;
  status.node_name = status.meta.name = "node-a";
  status.total = 2;
  status.devices.resize(2);
  for (int id = 0; id < 2; ++id) {
    Gpu& gpu = status.devices[static_cast<std::size_t>(id)].gpu;
    gpu.index = id;
    gpu.temperature_c = 50;
  }
  return status;
}

TEST(NodeReporterNews, is_what_a_scheduler_or_a_person_would_act_on) {
  const GpuNodeStatus before = two_gpus();
  EXPECT_FALSE(is_news(before, before));
  GpuNodeStatus now = before;
  now.heartbeat = Instant{1};
  EXPECT_FALSE(is_news(before, now));
  now.devices[1].gpu.health = Health::Unhealthy;
  EXPECT_TRUE(is_news(before, now));
  now = before;
  now.devices[0].in_use_by = {"u"};
  EXPECT_TRUE(is_news(before, now));
  now = before;
  now.devices.pop_back();
  EXPECT_TRUE(is_news(before, now));
  now = before;
  now.fabric.rdma_ports = 1;
  EXPECT_TRUE(is_news(before, now));
  now = before;
  now.source = "another driver";
  EXPECT_TRUE(is_news(before, now));
}

TEST(NodeReporterNews, temperatures_count_in_steps) {
  const auto news = [](int was, int is) {
    GpuNodeStatus before = two_gpus();
    GpuNodeStatus now = before;
    before.devices[1].gpu.temperature_c = was;
    now.devices[1].gpu.temperature_c = is;
    return is_news(before, now);
  };
  EXPECT_FALSE(news(50, 54));
  EXPECT_TRUE(news(50, 55));
  EXPECT_TRUE(news(50, 45));
  EXPECT_FALSE(news(kHotC - 1, kHotC + 1)) << "it flickers";
  EXPECT_TRUE(news(kHotC - 2, kHotC + 1));
  EXPECT_TRUE(news(kHotC + 1, kHotC - 2));
  EXPECT_FALSE(news(kHotC, kHotC + 4));
}

// Keeps what was applied; may lack the definition, the object or the node.
class Server {
 public:
  Server()
      : server([this](const HttpRequest& request, Exchange& exchange) {
          exchange.answer(reply(request));
        }) {}

  HttpResponse reply(const HttpRequest& request) {
    const std::lock_guard lock(mutex);
    const std::string path(request.path);
    if (path == "/api/v1/nodes/node-a" && !may_read) return refusal(403, "Forbidden");
    if (path == "/api/v1/nodes/node-a")
      return has_node ? answer(200, node) : refusal(404, "NotFound");
    if (!has_definition) return refusal(404, "NotFound");
    if (is_down) return refusal(503, "ServiceUnavailable");
    if (path == kBase) {
      ++objects;
      object = parse_json(request.body()).value();
      return answer(200, "{}");
    }
    if (object.is_null()) return refusal(404, "NotFound");
    status = parse_json(request.body()).value();
    ++statuses;
    return answer(200, "{}");
  }
  template <typename T>
  T ask(T Server::*member) {
    const std::lock_guard lock(mutex);
    return this->*member;
  }
  template <typename T>
  void set(T Server::*member, T value) {
    const std::lock_guard lock(mutex);
    this->*member = std::move(value);
  }

  std::mutex mutex;
  Json object, status;
  int objects = 0, statuses = 0;
  bool may_read = true, has_node = true, has_definition = true, is_down = false;
  std::string node = kNode;
  ApiServer server;
};

class NodeReporterTest : public testing::Test {
 protected:
  NodeReporterTest() { restart(minutes(10)); }
  void restart(Duration heartbeat, Duration stale = seconds(60)) {
    NodeReporterOptions options;
    options.node = "node-a";
    options.heartbeat = heartbeat;
    options.stale = stale;
    options.first_wait = milliseconds(5);
    options.longest_wait = milliseconds(20);
    reporter = std::make_unique<NodeReporter>(*client.api, options,
                                              [this] { return Instant{++time * 1000}; });
  }
  bool writes(int count) {
    return comes_true([&] { return server.ask(&Server::statuses) >= count; });
  }
  std::string problem() { return reporter->report().problem; }

  Server server;
  Client client{server.server.access()};
  std::atomic<std::int64_t> time{0};
  std::unique_ptr<NodeReporter> reporter;
};

TEST_F(NodeReporterTest, writes_the_object_with_its_owner_and_then_only_what_is_new) {
  reporter->offer(two_gpus());
  ASSERT_TRUE(writes(1));
  const Json object = server.ask(&Server::object);
  EXPECT_EQ(object["spec"]["nodeName"], "node-a");
  EXPECT_EQ(object["metadata"]["ownerReferences"],
            Json::parse(R"([{"apiVersion":"v1","kind":"Node","name":"node-a","uid":"n-1"}])"));
  EXPECT_EQ(server.ask(&Server::status)["status"]["total"], 2);
  EXPECT_EQ(server.ask(&Server::status)["status"]["heartbeatTime"], "1970-01-01T00:00:01.000Z");
  const auto seen = server.server.seen();
  EXPECT_TRUE(seen.back().ends_with("/status?fieldManager=gpu-scheduler-agent&force=true"))
      << seen.back();
  for (int i = 0; i < 5; ++i) reporter->offer(two_gpus());
  GpuNodeStatus broken = two_gpus();
  broken.devices[1].gpu.health = Health::Unhealthy;
  reporter->offer(broken);
  ASSERT_TRUE(writes(2));
  EXPECT_EQ(server.ask(&Server::status)["status"]["devices"][1]["health"], "Unhealthy");
  EXPECT_TRUE(comes_true([&] { return reporter->report().changes == 2; }));
  EXPECT_EQ(server.ask(&Server::statuses), 2);
  EXPECT_EQ(server.ask(&Server::objects), 1);
  EXPECT_EQ(reporter->report().heartbeats, 0U);
}

TEST_F(NodeReporterTest, beats_while_nothing_changes) {
  restart(milliseconds(20));
  reporter->offer(two_gpus());
  ASSERT_TRUE(writes(4));
  EXPECT_EQ(server.ask(&Server::objects), 1);
  EXPECT_TRUE(comes_true([&] { return reporter->report().heartbeats >= 3; }));
  EXPECT_EQ(reporter->report().changes, 1U);
}

TEST_F(NodeReporterTest, does_not_beat_for_gpus_that_nobody_looks_at) {
  restart(milliseconds(20), milliseconds(1));
  reporter->offer(two_gpus());
  EXPECT_TRUE(comes_true([&] { return problem() == "the GPUs don't answer"; }));
  const int before = server.ask(&Server::statuses);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(server.ask(&Server::statuses), before);
}

TEST_F(NodeReporterTest, makes_what_was_deleted_anew) {
  reporter->offer(two_gpus());
  ASSERT_TRUE(writes(1));
  server.set(&Server::object, Json());
  GpuNodeStatus now = two_gpus();
  now.devices[0].in_use_by = {"u-1"};
  reporter->offer(now);
  ASSERT_TRUE(writes(2));
  EXPECT_EQ(server.ask(&Server::objects), 2);
}

TEST_F(NodeReporterTest, a_new_node_of_the_same_name_is_the_new_owner) {
  restart(milliseconds(20));
  reporter->offer(two_gpus());
  ASSERT_TRUE(writes(1));
  server.set(&Server::node, std::string(R"({"metadata":{"name":"node-a","uid":"n-2"}})"));
  ASSERT_TRUE(comes_true([&] { return server.ask(&Server::objects) == 2; }));
  EXPECT_EQ(server.ask(&Server::object)["metadata"]["ownerReferences"][0]["uid"], "n-2");
}

TEST_F(NodeReporterTest, without_the_right_to_read_the_node_it_writes_without_an_owner) {
  restart(milliseconds(20));
  server.set(&Server::may_read, false);
  reporter->offer(two_gpus());
  ASSERT_TRUE(writes(2));
  EXPECT_EQ(server.ask(&Server::objects), 1);
  EXPECT_FALSE(server.ask(&Server::object)["metadata"].contains("ownerReferences"));
  EXPECT_EQ(reporter->report().failures, 3U) << "it asks a few times";
  server.set(&Server::may_read, true);
  ASSERT_TRUE(comes_true([&] { return server.ask(&Server::objects) == 2; }));
  EXPECT_EQ(server.ask(&Server::object)["metadata"]["ownerReferences"][0]["uid"], "n-1");
  server.set(&Server::may_read, false);
  ASSERT_TRUE(writes(server.ask(&Server::statuses) + 3));
  EXPECT_EQ(server.ask(&Server::objects), 2) << "the owner stays";
}

TEST_F(NodeReporterTest, says_what_is_missing_and_goes_on_when_it_is_there) {
  server.set(&Server::has_definition, false);
  server.set(&Server::has_node, false);
  reporter->offer(two_gpus());
  EXPECT_TRUE(comes_true([&] { return problem().find("no node node-a") != std::string::npos; }));
  server.set(&Server::has_node, true);
  EXPECT_TRUE(comes_true(
      [&] { return problem().find("CustomResourceDefinition is missing") != std::string::npos; }));
  server.set(&Server::is_down, true);
  server.set(&Server::has_definition, true);
  EXPECT_TRUE(comes_true([&] { return problem() == "told so"; }));
  GpuNodeStatus newer = two_gpus();
  newer.devices[0].in_use_by = {"u-7"};
  reporter->offer(newer);
  server.set(&Server::is_down, false);
  ASSERT_TRUE(writes(1));
  EXPECT_EQ(server.ask(&Server::status)["status"]["devices"][0]["inUseBy"][0], "u-7");
  EXPECT_TRUE(comes_true([&] { return problem().empty(); }));
  EXPECT_GE(reporter->report().failures, 3U);
}

TEST(NodePods, are_those_of_the_node_that_have_not_ended) {
  auto feed = std::make_shared<WatchFeed>();
  const auto pod = [](const std::string& name, const std::string& phase, const std::string& more,
                      const std::string& version = "5") {
    return R"({"metadata":{"namespace":"ml","name":")" + name + R"(","uid":"u-)" + name +
           R"(","resourceVersion":")" + version + "\"" + more +
           R"(},"spec":{"nodeName":"node-a"},"status":{"phase":")" + phase + R"("}})";
  };
  const std::string given = R"(,"annotations":{"gpu.scheduling/allocated":"node-a:1,3"})";
  const std::string elsewhere = R"(,"annotations":{"gpu.scheduling/allocated":"node-b:1"})";
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    if (request.parameter("watch") != nullptr) return exchange.answer(stream_of(feed));
    exchange.answer(answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[)" +
                                    pod("a", "Running", given) + "," + pod("b", "Failed", given) +
                                    "," + pod("c", "Pending", elsewhere) + "]}"));
  });
  Client client(server.access());
  std::atomic<int> changes{0};
  NodePods pods(*client.api, "node-a", [&] { ++changes; });
  EXPECT_FALSE(pods.list());
  pods.start();
  EXPECT_TRUE(comes_true([&] { return pods.list().has_value(); }));
  const std::vector<NodePod> both = {{"ml", "a", "u-a", {1, 3}}, {"ml", "c", "u-c", {}}};
  EXPECT_EQ(pods.list(), both);
  EXPECT_NE(server.seen().front().find("fieldSelector=spec.nodeName%3Dnode-a"), std::string::npos);
  feed->send("MODIFIED", pod("a", "Succeeded", given, "6"));
  EXPECT_TRUE(comes_true([&] { return pods.list()->size() == 1; }));
  EXPECT_GE(changes, 3);
  feed->end();
  pods.stop();
}

}  // namespace
}  // namespace gs::kube
