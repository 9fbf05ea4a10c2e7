#include "drivers/kubernetes/claim_book.hpp"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

// Its version rises with the count.
std::string claim(const std::string& name, int count) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ml","uid":"u-)" + name +
         R"(","resourceVersion":")" + std::to_string(count) + R"("},"spec":{"devices":{"count":)" +
         std::to_string(count) + "}}}";
}

TEST(ClaimBook, knows_what_it_follows_and_reads_what_it_does_not_know) {
  auto feed = std::make_shared<WatchFeed>();
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    if (request.parameter("watch") != nullptr) return exchange.answer(stream_of(feed));
    if (request.path.ends_with("/gpuclaims"))
      return exchange.answer(answer(
          200, R"({"metadata":{"resourceVersion":"5"},"items":[)" + claim("known", 1) + "]}"));
    if (request.path.ends_with("/new")) return exchange.answer(answer(200, claim("new", 2)));
    if (request.path.ends_with("/broken"))
      return exchange.answer(answer(200, R"({"metadata":{"name":"broken"},"spec":{}})"));
    if (request.path.ends_with("/busy")) return exchange.answer(refusal(503, "ServiceUnavailable"));
    exchange.answer(refusal(404, "NotFound"));
  });
  Client client(server.access());
  ClaimBook book(*client.api, seconds(30));
  const auto find = [&](const char* name) {
    auto got = std::make_shared<Result<std::optional<GpuClaim>>>(Error{});
    auto has_come = std::make_shared<std::atomic<bool>>(false);
    book.find("ml", name, [got, has_come](Result<std::optional<GpuClaim>> found) {
      *got = std::move(found);
      *has_come = true;
    });
    EXPECT_TRUE(comes_true([&] { return has_come->load(); }));
    return *got;
  };
  const auto reads = [&] {
    const auto seen = server.seen();
    return std::count_if(seen.begin(), seen.end(),
                         [](const std::string& one) { return one.ends_with("/gpuclaims/known"); });
  };
  book.start();
  // Until it is in the book it is read, and this server has it only in its list.
  EXPECT_TRUE(comes_true([&] { return find("known")->has_value(); }));
  const auto before = reads();
  EXPECT_EQ((*find("known"))->count, 1);
  EXPECT_EQ(reads(), before);
  EXPECT_EQ((*find("new"))->count, 2);
  EXPECT_FALSE(find("none")->has_value());
  EXPECT_FALSE(find("broken").ok());
  EXPECT_FALSE(find("busy").ok());

  feed->send("MODIFIED", claim("known", 3));
  EXPECT_TRUE(comes_true([&] { return (*find("known"))->count == 3; }));
  feed->send("DELETED", claim("known", 3));
  EXPECT_TRUE(comes_true([&] { return !find("known")->has_value(); }));
  book.stop();
  feed->end();
}

}  // namespace
}  // namespace gs::kube
