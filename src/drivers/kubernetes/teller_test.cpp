#include "drivers/kubernetes/teller.hpp"

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"
#include "wire/json_reader.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

// Leaves the first word about claim "ring" without an answer until it is told to.
class SlowServer {
 public:
  SlowServer()
      : server([this](const HttpRequest& request, Exchange& exchange) {
          const bool ring = request.message.target().find("/ring/") != std::string::npos;
          const std::lock_guard lock(mutex_);
          if (!ring) return exchange.answer(answer(200, "{}"));
          bodies_.emplace_back(request.message.body());
          if (bodies_.size() > 1) return exchange.answer(answer(200, "{}"));
          held_ = &exchange;
        }) {}
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_->answer(answer(200, "{}"));
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> bodies_;
  Exchange* held_ = nullptr;

 public:
  ApiServer server;
};

TellClaim told(const std::string& claim, const std::string& message) {
  ClaimStatus status;
  status.message = message;
  return {"ml", claim, status};
}

TEST(Teller, a_later_word_about_an_object_does_not_overtake_the_earlier_one) {
  SlowServer server;
  Client client(server.server.access());
  auto teller = std::make_unique<Teller>(*client.api, TellerOptions{}, [] { return Instant{1}; });
  const auto say = [&](const TellClaim& words) {
    client.loop.post([&teller, words] { teller->tell_claim(words); });
  };
  say(told("ring", "first"));
  ASSERT_TRUE(comes_true([&] { return server.bodies().size() == 1; }));
  say(told("ring", "second"));
  say(told("ring", "third"));
  say(told("other", "words"));
  ASSERT_TRUE(comes_true([&] { return server.server.seen().size() == 2; }));
  EXPECT_EQ(server.bodies().size(), 1U) << "the others wait for the first";
  server.let_go();
  ASSERT_TRUE(comes_true([&] { return server.bodies().size() == 2; }));
  EXPECT_NE(server.bodies()[1].find("third"), std::string::npos) << server.bodies()[1];
  std::atomic<bool> gone = false;
  client.loop.post([&] {
    teller.reset();
    gone = true;
  });
  EXPECT_TRUE(comes_true([&] { return gone.load(); }));
}

TEST(Teller, words_wait_for_a_server_that_is_away) {
  ApiServer server(
      [](const HttpRequest&, Exchange& exchange) { exchange.answer(answer(200, "{}")); });
  ApiOptions options;
  options.retry.tries = 1;
  Client client(server.access(), options);
  TellerOptions slow;
  slow.per_second = 1;
  auto teller = std::make_unique<Teller>(*client.api, slow, [] { return Instant{1}; });
  const auto say = [&](const TellClaim& words) {
    client.loop.post([&teller, words] { teller->tell_claim(words); });
  };
  server.down();
  say(told("ring", "while it is away"));
  // Who asks after it has failed too: the words have been tried.
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(client.ask(read_object(pods(), "ml", "one")).ok());
  server.restart();
  EXPECT_TRUE(comes_true([&] { return server.seen().size() == 1; }));
  std::atomic<bool> gone = false;
  client.loop.post([&] {
    teller.reset();
    gone = true;
  });
  EXPECT_TRUE(comes_true([&] { return gone.load(); }));
}

TEST(Teller, news_come_after_warnings_and_of_very_many_only_the_latest) {
  std::mutex mutex;
  std::vector<std::string> told;  // names of pods, in the order in which they were told
  Exchange* held = nullptr;
  ApiServer server([&](const HttpRequest& request, Exchange& exchange) {
    const std::lock_guard lock(mutex);
    const Json event = parse_json(request.message.body()).value();
    told.push_back(event["regarding"]["name"]);
    if (told.size() > 1) return exchange.answer(answer(201, "{}"));
    held = &exchange;
  });
  const auto seen = [&] {
    const std::lock_guard lock(mutex);
    return told;
  };
  Client client(server.access());
  TellerOptions options;
  options.at_a_time = 1;
  options.most_news = 2;
  auto teller = std::make_unique<Teller>(*client.api, options, [] { return Instant{1}; });
  const auto say = [&](const std::string& pod, bool warning) {
    client.loop.post([&teller, note = Note{{"ml", pod, pod}, warning, "Reason", "words"}] {
      teller->note(note);
    });
  };
  say("first", false);
  ASSERT_TRUE(comes_true([&] { return seen().size() == 1; }));
  for (const char* pod : {"oldest", "older", "newer"}) say(pod, false);
  say("refused", true);
  std::atomic<bool> said = false;
  client.loop.post([&] { said = true; });
  ASSERT_TRUE(comes_true([&] { return said.load(); }));
  {
    const std::lock_guard lock(mutex);
    held->answer(answer(201, "{}"));
  }
  EXPECT_TRUE(comes_true([&] { return seen().size() == 4; }));
  EXPECT_EQ(seen(), (std::vector<std::string>{"first", "refused", "older", "newer"}));
  std::atomic<bool> gone = false;
  client.loop.post([&] {
    teller.reset();
    gone = true;
  });
  EXPECT_TRUE(comes_true([&] { return gone.load(); }));
}

// Keeps its first answer back until it is told to go on; then it answers what the test says.
class Recorder {
 public:
  using Answer = std::function<HttpResponse(int)>;  // by number of the request, from 0
  explicit Recorder(Answer answer_to)
      : server([this, answer_to = std::move(answer_to)](const HttpRequest& request,
                                                        Exchange& exchange) {
          const std::lock_guard lock(mutex_);
          bodies_.push_back(parse_json(request.message.body()).value());
          if (bodies_.size() > 1)
            return exchange.answer(answer_to(static_cast<int>(bodies_.size()) - 1));
          held_ = &exchange;
        }),
        client(server.access()) {
    options.at_a_time = 1;
    options.per_second = 1000;
    options.retry.first = milliseconds(5);
    teller = std::make_unique<Teller>(*client.api, options, [this] { return Instant{++now_}; });
    run([this] { teller->note({{"ml", "held", "held"}, true, "FailedScheduling", "words"}); });
    EXPECT_TRUE(comes_true([&] { return bodies().size() == 1; }));
  }
  ~Recorder() {
    run([this] { teller.reset(); });
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void run(const std::function<void()>& f) {
    std::atomic<bool> done = false;
    client.loop.post([&] {
      f();
      done = true;
    });
    EXPECT_TRUE(comes_true([&] { return done.load(); }));
  }
  void go_on(int status = 201) {
    const std::lock_guard lock(mutex_);
    held_->answer(answer(status, "{}"));
  }
  std::vector<Json> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  // The pods that events were about, in order.
  std::vector<std::string> about() {
    std::vector<std::string> names;
    for (const Json& body : bodies())
      if (body.contains("regarding")) names.push_back(body["regarding"]["name"]);
    return names;
  }

 private:
  std::mutex mutex_;
  std::vector<Json> bodies_;
  Exchange* held_ = nullptr;
  std::int64_t now_ = 0;

 public:
  ApiServer server;
  Client client;
  TellerOptions options;
  std::unique_ptr<Teller> teller;
};

HttpResponse well(int) { return answer(200, "{}"); }

using Names = std::vector<std::string>;

// Thousands of pods are bound at once, and then somebody waits and is to be told why.
TEST(Teller, news_leave_writes_for_those_who_wait_for_a_word) {
  ApiServer server([](const HttpRequest&, Exchange& exchange) { exchange.answer(well(0)); });
  Client client(server.access());
  TellerOptions options;
  options.per_second = 4;
  options.period = minutes(60);
  auto teller = std::make_unique<Teller>(*client.api, options, [] { return Instant{1}; });
  const auto run = [&](const std::function<void()>& f) {
    std::atomic<bool> done = false;
    client.loop.post([&] {
      f();
      done = true;
    });
    EXPECT_TRUE(comes_true([&] { return done.load(); }));
  };
  run([&] {
    for (const char* pod : {"a", "b", "c", "d", "e"})
      teller->note({{"ml", pod, pod}, false, "Scheduled", "words"});
  });
  EXPECT_TRUE(comes_true([&] { return server.seen().size() == 2; }));
  run([&] { teller->tell({{"ml", "waits", "waits"}, "Unschedulable", "no room", ""}); });
  EXPECT_TRUE(comes_true([&] { return server.seen().size() == 4; })) << "condition and event";
  run([&] { teller.reset(); });
}

TEST(Teller, words_of_pods_that_wait_no_more_are_dropped_and_all_others_kept) {
  Recorder server(well);
  constexpr int kPods = 20'000;
  const auto uid = [](int i) { return "p" + std::to_string(i); };
  server.run([&] {
    for (int i = 0; i < kPods; ++i)
      server.teller->tell({{"ml", uid(i), uid(i)}, "Unschedulable", "no room", ""});
    server.teller->note({{"ml", "p0", "p0"}, true, "Preempted", "words"});
    for (int i = 0; i + 1 < kPods; ++i) server.teller->retract({uid(i)});
  });
  server.go_on();
  EXPECT_TRUE(comes_true([&] { return server.bodies().size() == 4; }));
  EXPECT_EQ(server.about(), (Names{"held", "p19999", "p0"})) << "with its condition before it";
}

TEST(Teller, words_under_way_are_not_repeated_for_a_pod_that_waits_no_more) {
  Recorder server(well);
  server.run([&] {
    server.teller->note({{"ml", "held", "held"}, true, "FailedScheduling", "newer"});
    server.teller->retract({"held"});
    server.teller->note({{"ml", "later", "later"}, true, "Reason", "words"});
  });
  server.go_on(500);
  EXPECT_TRUE(comes_true([&] { return server.about().size() == 2; }));
  server.run([&] { server.teller->note({{"ml", "last", "last"}, true, "Reason", "words"}); });
  EXPECT_TRUE(comes_true([&] { return server.about().size() == 3; }));
  EXPECT_EQ(server.about(), (Names{"held", "later", "last"}));
}

TEST(Teller, what_the_server_failed_to_do_is_tried_again_but_not_for_ever) {
  Recorder server(
      [](int number) { return number <= 8 ? refusal(500, "InternalError") : answer(201, "{}"); });
  server.go_on(500);
  // Once, and five times more.
  EXPECT_TRUE(comes_true([&] { return server.bodies().size() == 6; }));
  server.run([&] { server.teller->note({{"ml", "other", "other"}, true, "Reason", "words"}); });
  EXPECT_TRUE(comes_true([&] { return server.bodies().size() == 10; }));
  EXPECT_EQ(server.about(), (Names{"held", "held", "held", "held", "held", "held", "other", "other",
                                   "other", "other"}));
  EXPECT_EQ(server.bodies()[0]["metadata"]["name"], server.bodies()[5]["metadata"]["name"])
      << "if it was done nevertheless, it is not done twice";
}

TEST(Teller, newer_words_come_instead_of_those_that_the_server_failed_to_do) {
  Recorder server(well);
  server.run([&] {
    server.teller->note({{"ml", "held", "held"}, true, "FailedScheduling", "newer"});
  });
  server.go_on(500);
  ASSERT_TRUE(comes_true([&] { return server.bodies().size() == 2; }));
  EXPECT_EQ(server.bodies()[1]["note"], "newer");
}

TEST(Teller, repetitions_come_last_and_are_events_of_their_own) {
  Recorder server(well);
  server.run([&] {
    server.teller->note({{"ml", "held", "held"}, true, "FailedScheduling", "words", true});
    server.teller->note({{"ml", "again", "again"}, true, "Reason", "words", true});
    server.teller->note({{"ml", "good", "good"}, false, "Scheduled", "words"});
    server.teller->note({{"ml", "new", "new"}, true, "Reason", "words"});
  });
  server.go_on();
  ASSERT_TRUE(comes_true([&] { return server.about().size() == 4; }));
  EXPECT_EQ(server.about(), (Names{"held", "new", "good", "again"}))
      << "what is under way is not repeated";
  ASSERT_TRUE(comes_true([&] {  // as soon as the answer before has arrived
    server.run([&] {
      server.teller->note({{"ml", "again", "again"}, true, "Reason", "words", true});
    });
    return server.about().size() > 4;
  }));
  EXPECT_NE(server.bodies()[3]["metadata"]["name"], server.bodies()[4]["metadata"]["name"]);
}

}  // namespace
}  // namespace gs::kube
