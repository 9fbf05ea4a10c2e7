#include "drivers/kubernetes/reflector.hpp"

#include <map>

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

std::string object(const std::string& name, int version, const std::string& uid = "") {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":")" +
         (uid.empty() ? "uid-" + name : uid) + R"(","resourceVersion":")" +
         std::to_string(version) + R"("}})";
}

class Follow : public ::testing::Test {
 protected:
  Follow() : server_([this](const HttpRequest& r, Exchange& e) { handle(r, e); }) {
    options_.resource = pods();
    options_.first_wait = milliseconds(5);
    options_.longest_wait = milliseconds(50);
    options_.page = 2;
  }
  void follow() {
    client_ = std::make_unique<Client>(server_.access());
    reflector_ =
        std::make_unique<Reflector>(*client_->api, options_, [this](const ObjectChange& c) {
          const std::lock_guard lock(mutex_);
          static const char* const words[] = {"added", "modified", "deleted", "synced"};
          std::string text = words[static_cast<int>(c.kind)];
          if (c.kind != ObjectChange::Kind::Synced)
            text += " " + std::string(c.name) + "@" + std::string(c.resource_version);
          if (c.kind == ObjectChange::Kind::Deleted) text += " " + std::string(c.uid);
          changes_.push_back(text);
        });
    reflector_->start();
  }
  ~Follow() override {
    reflector_.reset();
    client_.reset();
  }

  // Pages of the list, and watches as they are asked for.
  void handle(const HttpRequest& request, Exchange& exchange) {
    const std::lock_guard lock(mutex_);
    if (request.parameter("watch") != nullptr) {
      asked_from_.push_back(*request.parameter("resourceVersion"));
      if (refuse_watch_ != 0) {
        const int code = std::exchange(refuse_watch_, 0);
        return exchange.answer(refusal(code, code == 410 ? "Expired" : "InternalError"));
      }
      feed_ = std::make_shared<WatchFeed>();
      ++watches_;
      return exchange.answer(stream_of(feed_));
    }
    if (!is_served_) return exchange.answer(refusal(404, "NotFound"));
    if (std::exchange(refuse_list_, false)) return exchange.answer(refusal(410, "Expired"));
    const std::string* limit = request.parameter("limit");
    const std::string* next = request.parameter("continue");
    const std::size_t start = next == nullptr ? 0 : std::stoul(*next);
    const std::size_t end =
        limit == nullptr ? objects_.size() : std::min(objects_.size(), start + std::stoul(*limit));
    std::string items;
    auto at = objects_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(start));
    for (std::size_t i = start; i < end; ++i, ++at) items += (i > start ? "," : "") + at->second;
    const std::string more =
        end < objects_.size() ? R"(,"continue":")" + std::to_string(end) + "\"" : "";
    exchange.answer(answer(200, R"({"metadata":{"resourceVersion":")" + std::to_string(version_) +
                                    "\"" + more + R"(},"items":[)" + items + "]}"));
    if (!more.empty() && expire_next_page_) {
      refuse_list_ = true;
      expire_next_page_ = false;
    }
  }
  std::vector<std::string> changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  // Waits for the watch number so and so, and gives its feed.
  std::shared_ptr<WatchFeed> watch(int number) {
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex_);
      return watches_ >= number;
    }));
    const std::lock_guard lock(mutex_);
    return feed_;
  }
  void expect_changes(const std::vector<std::string>& wanted) {
    comes_true([&] { return changes().size() >= wanted.size(); });
    EXPECT_EQ(changes(), wanted);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  int version_ = 10;
  int watches_ = 0;
  int refuse_watch_ = 0;
  bool refuse_list_ = false, expire_next_page_ = false, is_served_ = true;
  std::vector<std::string> asked_from_;
  std::shared_ptr<WatchFeed> feed_;
  std::vector<std::string> changes_;
  ApiServer server_;
  ReflectorOptions options_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(Follow, lists_page_by_page_then_tells_what_changes) {
  objects_ = {{"a", object("a", 1)}, {"b", object("b", 2)}, {"c", object("c", 3)}};
  follow();
  auto feed = watch(1);
  feed->send("ADDED", object("d", 11));
  feed->send("MODIFIED", object("a", 12));
  feed->send("DELETED", object("b", 13));
  expect_changes({"added a@1", "added b@2", "added c@3", "synced", "added d@11", "modified a@12",
                  "deleted b@13 uid-b"});
  EXPECT_EQ(asked_from_, (std::vector<std::string>{"10"}));
  EXPECT_TRUE(reflector_->figures().is_synced);
}

TEST_F(Follow, resumes_where_a_watch_ended_and_bookmarks_count) {
  follow();
  auto feed = watch(1);
  feed->send("ADDED", object("a", 11));
  feed->send("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":"20"}})");
  feed->end();
  feed = watch(2);
  feed->send("ADDED", object("b", 21));
  expect_changes({"synced", "added a@11", "added b@21"});
  EXPECT_EQ(asked_from_, (std::vector<std::string>{"10", "20"}));
  EXPECT_EQ(reflector_->figures().lists, 1U);
}

TEST_F(Follow, frames_may_be_cut_anywhere) {
  follow();
  auto feed = watch(1);
  const std::string text = R"({"type":"ADDED","object":)" + object("a", 11) + "}\n" +
                           R"({"type":"DELETED","object":)" + object("a", 12) + "}\n";
  for (std::size_t at = 0; at < text.size(); at += 7) feed->send(text.substr(at, 7));
  expect_changes({"synced", "added a@11", "deleted a@12 uid-a"});
}

TEST_F(Follow, a_watch_that_is_too_old_lists_again_and_tells_the_difference) {
  objects_ = {{"a", object("a", 1)}, {"b", object("b", 2)}, {"c", object("c", 3)}};
  follow();
  auto feed = watch(1);
  {
    const std::lock_guard lock(mutex_);
    objects_ = {{"a", object("a", 1)}, {"b", object("b", 30)}, {"d", object("d", 31)}};
    objects_["c"] = object("c", 32, "another");
    version_ = 40;
  }
  feed->send("ERROR", R"({"kind":"Status","status":"Failure","reason":"Expired","code":410})");
  watch(2);
  expect_changes({"added a@1", "added b@2", "added c@3", "synced", "modified b@30",
                  "deleted c@3 uid-c", "added c@32", "added d@31", "synced"});
  {
    const std::lock_guard lock(mutex_);
    objects_.erase("a");
    refuse_watch_ = 410;  // as the status of the answer
  }
  feed_->end();
  watch(3);
  comes_true([&] { return changes().size() >= 11; });
  EXPECT_EQ(changes()[9], "deleted a@1 uid-a");
  EXPECT_EQ(changes()[10], "synced");
}

TEST_F(Follow, a_list_that_expires_between_pages_is_read_in_one_piece) {
  objects_ = {{"a", object("a", 1)}, {"b", object("b", 2)}, {"c", object("c", 3)}};
  expire_next_page_ = true;
  follow();
  watch(1);
  expect_changes({"added a@1", "added b@2", "added c@3", "synced"});
}

TEST_F(Follow, goes_on_after_errors_broken_frames_and_a_restart) {
  follow();
  auto feed = watch(1);
  feed->send("ADDED", object("a", 11));
  feed->send("this is no frame\n");
  feed = watch(2);
  {
    const std::lock_guard lock(mutex_);
    refuse_watch_ = 500;
  }
  feed->send("ERROR", R"({"kind":"Status","reason":"InternalError","code":500})");
  feed = watch(3);
  feed->send("MODIFIED", object("a", 12));
  expect_changes({"synced", "added a@11", "modified a@12"});
  server_.restart();
  feed = watch(4);
  feed->send("DELETED", object("a", 13));
  expect_changes({"synced", "added a@11", "modified a@12", "deleted a@13 uid-a"});
  EXPECT_EQ(asked_from_.back(), "12");
}

TEST_F(Follow, what_is_optional_may_be_installed_later) {
  is_served_ = false;
  options_.is_optional = true;
  options_.look_again = milliseconds(20);
  follow();
  expect_changes({"synced"});
  {
    const std::lock_guard lock(mutex_);
    is_served_ = true;
    objects_ = {{"a", object("a", 1)}};
  }
  watch(1);
  expect_changes({"synced", "added a@1", "synced"});
}

TEST_F(Follow, a_watch_without_a_sign_of_life_is_taken_for_dead) {
  options_.watch_timeout = milliseconds(20);
  options_.stall = milliseconds(30);
  follow();
  watch(3);  // no feed says anything, none ends
  EXPECT_EQ(reflector_->figures().lists, 1U);
}

TEST_F(Follow, after_stop_nothing_is_told) {
  follow();
  auto feed = watch(1);
  feed->send("ADDED", object("a", 11));
  expect_changes({"synced", "added a@11"});
  std::atomic<bool> is_stopped = false;
  client_->loop.post([&] {
    reflector_->stop();
    is_stopped = true;
  });
  ASSERT_TRUE(comes_true([&] { return is_stopped.load(); }));
  feed->send("ADDED", object("b", 12));
  client_->ask(read_object(nodes(), "", "something"));
  EXPECT_EQ(changes().size(), 2U);
}

}  // namespace
}  // namespace gs::kube
