#include "drivers/kubernetes/api.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "drivers/kubernetes/api_server_test.hpp"
#include "drivers/kubernetes/list_all.hpp"
#include "wire/kube/encode.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

TEST(ApiRequests, name_their_objects) {
  EXPECT_EQ(read_object(nodes(), "", "n1").target(), "/api/v1/nodes/n1");
  EXPECT_EQ(read_object(leases(), "gpu-scheduler", "gpu-n1-0").target(),
            "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-n1-0");
  ListOptions list;
  list.label_selector = "a=b,c in (d)";
  list.next = "x/=";
  EXPECT_EQ(list_objects(pods(), "", list).target(),
            "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=500&continue=x%2F%3D");
  WatchOptions watch;
  watch.resource_version = "17";
  EXPECT_EQ(watch_objects(pods(), "ns", watch).target(),
            "/api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
            "&resourceVersion=17");
  EXPECT_EQ(apply_object(nodes(), "", "n", "{}", "agent").target(),
            "/api/v1/nodes/n?fieldManager=agent&force=true");
  EXPECT_EQ(of_subresource(update_object(pods(), "ns", "p", "{}"), "status").target(),
            "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(read_path("/apis/scheduling.x-k8s.io/v1alpha1").target(),
            "/apis/scheduling.x-k8s.io/v1alpha1");
}

TEST(ApiRequests, bindings_and_evictions_are_urgent) {
  const ApiRequest request = bind_pod("ns", "p", "{}");
  EXPECT_EQ(request.method + " " + request.target(), "POST /api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(request.lane, Lane::Urgent);
  EXPECT_EQ(evict_pod("ns", "p", "{}").target(), "/api/v1/namespaces/ns/pods/p/eviction");
  EXPECT_EQ(delete_object(pods(), "ns", "p", encode_delete("u", "5")).method, "DELETE");
}

TEST(ApiErrors, are_read_from_the_status) {
  const auto conflict =
      read_api_error(409, R"({"kind":"Status","reason":"Conflict","message":"it changed"})", "");
  EXPECT_EQ(conflict.reason, ApiReason::Conflict);
  EXPECT_EQ(conflict.message, "it changed");
  const auto exists = read_api_error(409, R"({"kind":"Status","reason":"AlreadyExists"})", "");
  EXPECT_EQ(exists.reason, ApiReason::AlreadyExists);
  const auto expired =
      read_api_error(200, R"({"kind":"Status","reason":"Expired","code":410})", "");
  EXPECT_EQ(expired.reason, ApiReason::Expired);
  EXPECT_EQ(expired.code, 410);
  const auto busy = read_api_error(
      429, R"({"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":3,
               "causes":[{"reason":"DisruptionBudget"}]}})",
      "1");
  EXPECT_EQ(busy.retry_after, seconds(3));
  EXPECT_EQ(busy.cause, "DisruptionBudget");
  const auto proxy = read_api_error(503, "<html>\nno backend", "7");
  EXPECT_EQ(proxy.reason, ApiReason::Unavailable);
  EXPECT_EQ(proxy.message, "HTTP status 503: <html>");
  EXPECT_EQ(proxy.retry_after, seconds(7));
}

TEST(ApiErrors, say_what_may_be_tried_again) {
  Rng rng(1);
  const RetryPolicy policy;
  const auto again = [&](Again how, ApiReason reason, int code, bool may_be_done,
                         Duration retry_after = {}, const char* cause = "", int tries = 1) {
    ApiRequest request;
    request.again = how;
    ApiError error{reason, code, "", cause, retry_after, may_be_done};
    return wait_before_again(request, error, tries, policy, rng).has_value();
  };
  EXPECT_TRUE(again(Again::Always, ApiReason::Unavailable, 500, true));
  EXPECT_TRUE(again(Again::Always, ApiReason::NotAnswered, 0, true));
  EXPECT_FALSE(again(Again::Always, ApiReason::NotFound, 404, false));
  EXPECT_FALSE(again(Again::Always, ApiReason::Unavailable, 500, true, {}, "", policy.tries));
  EXPECT_FALSE(again(Again::IfUndone, ApiReason::Unavailable, 500, true));
  EXPECT_TRUE(again(Again::IfUndone, ApiReason::Unavailable, 503, true, seconds(1)));
  EXPECT_TRUE(again(Again::IfUndone, ApiReason::TooManyRequests, 429, false));
  EXPECT_TRUE(again(Again::IfUndone, ApiReason::NotAnswered, 0, false));
  EXPECT_FALSE(again(Again::IfUndone, ApiReason::NotAnswered, 0, true));
  EXPECT_FALSE(again(Again::IfUndone, ApiReason::TooManyRequests, 429, false, seconds(1),
                     "DisruptionBudget"));
  EXPECT_FALSE(again(Again::Never, ApiReason::TooManyRequests, 429, false));
}

TEST(ApiErrors, waits_double_up_to_a_limit) {
  Rng rng(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(backoff(milliseconds(100), seconds(10), 1, rng), milliseconds(101));
    EXPECT_GE(backoff(milliseconds(100), seconds(10), 3, rng), milliseconds(200));
    const Duration longest = backoff(milliseconds(100), seconds(10), 60, rng);
    EXPECT_GE(longest, seconds(5));
    EXPECT_LE(longest, seconds(10) + milliseconds(1));
  }
}

TEST(Api, answers_with_the_body_or_a_reason) {
  ApiServer server([](const HttpRequest& request, Exchange& exchange) {
    if (request.method() == "POST") return exchange.answer(refusal(409, "AlreadyExists"));
    exchange.answer(answer(200, R"({"kind":"Node"})"));
  });
  Metrics metrics;
  Client client(server.access(), {}, &metrics);
  const ApiAnswer node = client.ask(read_object(nodes(), "", "n1"));
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node.body, R"({"kind":"Node"})");
  const ApiAnswer lease = client.ask(create_object(leases(), "ns", "{}"));
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error->reason, ApiReason::AlreadyExists);
  EXPECT_EQ(lease.error->message, "told so");
  MetricsText text("gpu");
  metrics.write(text);
  const std::string page = text.text();
  EXPECT_NE(page.find(R"(kube_requests_total{verb="create",resource="leases.coordination.k8s.io")"
                      R"(,code="409"} 1)"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find(R"(kube_request_seconds_count{verb="get"} 1)"), std::string::npos) << page;
}

TEST(Api, tries_again_what_is_safe_and_nothing_else) {
  std::atomic<int> count = 0;
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    const int number = ++count;
    if (request.path.ends_with("/broken")) return exchange.answer(refusal(500, "InternalError"));
    if (number < 3)
      return exchange.answer(refusal(request.method() == "GET" ? 500 : 429, "TooManyRequests"));
    exchange.answer(answer(200, "{}"));
  });
  Client client(server.access());
  EXPECT_TRUE(client.ask(read_object(nodes(), "", "n1")).ok());
  EXPECT_EQ(count, 3);
  count = 0;
  EXPECT_TRUE(client.ask(create_object(pods(), "ns", "{}")).ok());
  EXPECT_EQ(count, 3);
  count = 0;
  EXPECT_FALSE(client.ask(update_object(pods(), "ns", "broken", "{}")).ok());
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(client.ask(read_object(pods(), "ns", "broken")).ok());
  EXPECT_EQ(count, 1 + RetryPolicy{}.tries);
}

TEST(Api, a_list_is_read_page_by_page) {
  ApiServer server([](const HttpRequest& request, Exchange& exchange) {
    const std::string* next = request.parameter("continue");
    if (request.path.ends_with("/pods") && next != nullptr && *next == "2")
      return exchange.answer(refusal(410, "Expired"));
    const std::string more = next == nullptr ? R"(,"continue":"1")"
                             : *next == "1" && request.path.ends_with("/pods")
                                 ? R"(,"continue":"2")"
                                 : "";
    exchange.answer(answer(200, R"({"metadata":{"resourceVersion":"7")" + more +
                                    R"(},"items":[{"metadata":{"name":"a"}}]})"));
  });
  Client client(server.access());
  const auto list = [&](const Resource& resource) {
    std::atomic<bool> is_over = false;
    std::string told;
    list_all(
        *client.api, list_objects(resource, "ns", {}),
        [&](std::string_view item) { told += std::to_string(item.size()) + " "; },
        [&](std::optional<ApiError> error) {
          told += error ? to_string(error->reason) : "all";
          is_over = true;
        });
    EXPECT_TRUE(comes_true([&] { return is_over.load(); }));
    return told;
  };
  EXPECT_EQ(list(leases()), "25 25 all");
  EXPECT_EQ(list(pods()), "25 25 Expired");
}

TEST(Api, survives_a_restart_of_the_server) {
  ApiServer server(
      [](const HttpRequest&, Exchange& exchange) { exchange.answer(answer(200, "{}")); });
  ApiOptions options;
  options.retry.tries = 1000;
  options.retry.longest = milliseconds(50);
  Client client(server.access(), options);
  EXPECT_TRUE(client.ask(read_object(nodes(), "", "n1")).ok());
  server.down();
  std::atomic<int> good = 0;
  for (int i = 0; i < 100; ++i) {
    ++client.asked;
    client.api->call(create_object(pods(), "ns", "{}"), [&](const ApiAnswer& given) {
      ++client.answered;
      if (given.ok()) ++good;
    });
  }
  server.restart();
  EXPECT_TRUE(comes_true([&] { return good == 100; }));
}

TEST(Api, cancelled_and_stopped_calls_are_answered_once) {
  ApiServer server([](const HttpRequest& request, Exchange& exchange) {
    if (request.path.ends_with("/busy"))
      return exchange.answer(
          refusal(429, "TooManyRequests", R"(,"details":{"retryAfterSeconds":30})"));
  });
  std::atomic<int> cancelled = 0;
  {
    Client client(server.access());
    const auto count = [&](const ApiAnswer& given) {
      ++client.answered;
      if (!given.ok() && given.error->reason == ApiReason::Cancelled) ++cancelled;
    };
    std::vector<Api::CallPtr> calls;
    for (int i = 0; i < 10; ++i)
      for (const char* name : {"busy", "hangs"}) {
        ++client.asked;
        calls.push_back(client.api->call(read_object(pods(), "ns", name), count));
      }
    EXPECT_TRUE(comes_true([&] { return server.seen().size() == 20; }));
    for (int i = 0; i < 10; ++i) client.api->cancel(calls[static_cast<std::size_t>(i)]);
    EXPECT_TRUE(comes_true([&] { return cancelled == 10; }));
  }
  EXPECT_EQ(cancelled, 20);
}

TEST(Api, a_token_that_rotates_is_read_again_when_the_server_refuses_the_old_one) {
  const auto path =
      std::filesystem::temp_directory_path() / ("api-token-" + std::to_string(::getpid()));
  std::ofstream(path) << "old";
  ApiServer server([](const HttpRequest& request, Exchange& exchange) {
    if (request.header("Authorization") != "Bearer new")
      return exchange.answer(refusal(401, "Unauthorized"));
    exchange.answer(answer(200, "{}"));
  });
  ClusterAccess access = server.access();
  access.token_file = path;
  {
    Client client(access);
    std::ofstream(path) << "new";
    EXPECT_TRUE(client.ask(create_object(pods(), "ns", "{}")).ok());
    EXPECT_EQ(server.seen().size(), 2U);
  }
  std::filesystem::remove(path);
}

TEST(Api, an_exec_plugin_is_asked_again_when_its_token_is_refused) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("api-plugin-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "plugin")
      << "#!/bin/sh\ncd \"$(dirname \"$0\")\"; echo x >> runs; T=t$(wc -l < runs)\n"
         "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
         "\"status\":{\"token\":\"'$T'\"}}'\n";
  std::filesystem::permissions(folder / "plugin", std::filesystem::perms::owner_all);
  ApiServer server([](const HttpRequest& request, Exchange& exchange) {
    if (request.header("Authorization") != "Bearer t2")
      return exchange.answer(refusal(401, "Unauthorized"));
    exchange.answer(answer(200, "{}"));
  });
  ClusterAccess access = server.access();
  access.exec = ExecPlugin{"v1", folder / "plugin", {}, {}, "", false};
  {
    Client client(access);
    EXPECT_TRUE(comes_true([&] { return client.ask(read_object(nodes(), "", "n")).ok(); }));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gs::kube
