#include "drivers/kubernetes/elector.hpp"

#include <set>

#include <gtest/gtest.h>

#include "drivers/kubernetes/api_server_test.hpp"
#include "wire/json_reader.hpp"

namespace gs::kube {
namespace {

using namespace testing_api;

// Keeps one lease as an API server does, and can be deaf to some callers.
class LeaseServer {
 public:
  LeaseServer() : server([this](const HttpRequest& r, Exchange& e) { handle(r, e); }) {}

  void ignore(const std::string& caller, bool does = true) {
    const std::lock_guard lock(mutex_);
    if (does)
      ignored_.insert(caller);
    else
      ignored_.erase(caller);
  }
  Json lease() const {
    const std::lock_guard lock(mutex_);
    return lease_;
  }
  void edit(const std::function<void(Json&)>& change) {
    const std::lock_guard lock(mutex_);
    change(lease_);
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
  }

 private:
  void handle(const HttpRequest& request, Exchange& exchange) {
    const std::lock_guard lock(mutex_);
    if (ignored_.contains(std::string(request.header("User-Agent"))))
      return exchange.answer(refusal(503, "ServiceUnavailable"));
    if (request.method() == "GET") {
      if (lease_.is_null()) return exchange.answer(refusal(404, "NotFound"));
      return exchange.answer(answer(200, lease_.dump()));
    }
    Json given = *parse_json(request.body());
    if (request.method() == "POST") {
      if (!lease_.is_null()) return exchange.answer(refusal(409, "AlreadyExists"));
    } else if (lease_.is_null() ||
               given["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
      return exchange.answer(refusal(409, "Conflict"));
    }
    lease_ = std::move(given);
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
    exchange.answer(answer(200, lease_.dump()));
  }

  mutable std::mutex mutex_;
  Json lease_;
  int version_ = 0;
  std::set<std::string> ignored_;

 public:
  ApiServer server;
};

struct Candidate {
  Candidate(const LeaseServer& leases, const std::string& name)
      : client(leases.server.access(), named(name)) {
    ElectorOptions options;
    options.name_space = "ns";
    options.name = "leader";
    options.identity = name;
    options.lease = seconds(2);
    options.renew_deadline = milliseconds(800);
    options.retry = milliseconds(100);
    Elector::Callbacks callbacks;
    callbacks.gained = [this] { ++gained; };
    callbacks.lost = [this](const std::string& why) {
      ++lost;
      const std::lock_guard lock(mutex);
      last_why = why;
    };
    elector = std::make_unique<Elector>(*client.api, options, callbacks);
    elector->start();
  }
  static ApiOptions named(const std::string& name) {
    ApiOptions options;
    options.user_agent = name;
    return options;
  }
  void stop() {
    std::atomic<bool> is_over = false;
    elector->stop([&] { is_over = true; });
    EXPECT_TRUE(comes_true([&] { return is_over.load(); }));
  }
  std::string why() {
    const std::lock_guard lock(mutex);
    return last_why;
  }

  std::atomic<int> gained = 0, lost = 0;
  std::mutex mutex;
  std::string last_why;
  Client client;
  std::unique_ptr<Elector> elector;
};

TEST(Elector, the_first_leads_and_the_lease_says_so) {
  LeaseServer leases;
  Candidate a(leases, "a");
  EXPECT_TRUE(comes_true([&] { return a.elector->is_leader(); }));
  EXPECT_TRUE(comes_true([&] { return a.gained == 1; }));
  const Json lease = leases.lease();
  EXPECT_EQ(lease["kind"], "Lease");
  EXPECT_EQ(lease["spec"]["holderIdentity"], "a");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"], 2);
  EXPECT_EQ(lease["spec"]["renewTime"].get<std::string>().size(),
            std::string("2026-01-02T03:04:05.123456Z").size());
  EXPECT_EQ(a.elector->leader(), "a");
}

TEST(Elector, who_stops_in_order_makes_room_at_once) {
  LeaseServer leases;
  Candidate a(leases, "a");
  ASSERT_TRUE(comes_true([&] { return a.elector->is_leader(); }));
  Candidate b(leases, "b");
  ASSERT_TRUE(comes_true([&] { return b.elector->leader() == "a"; }));
  EXPECT_FALSE(b.elector->is_leader());
  a.stop();
  EXPECT_FALSE(a.elector->is_leader());
  EXPECT_EQ(a.lost, 1);
  EXPECT_TRUE(comes_true([&] { return b.elector->is_leader(); }));
  EXPECT_EQ(leases.lease()["spec"]["leaseTransitions"], 1);
}

TEST(Elector, who_is_cut_off_stops_before_another_begins) {
  LeaseServer leases;
  Candidate a(leases, "a");
  ASSERT_TRUE(comes_true([&] { return a.elector->is_leader(); }));
  Candidate b(leases, "b"), c(leases, "c");
  for (int round = 0; round < 2; ++round) {
    Candidate* const all[] = {&a, &b, &c};
    Candidate* leader = nullptr;
    ASSERT_TRUE(comes_true([&] {
      for (Candidate* candidate : all)
        if (candidate->elector->is_leader()) leader = candidate;
      return leader != nullptr;
    }));
    const std::string name = leader->elector->leader();
    leases.ignore(name);
    EXPECT_TRUE(comes_true([&] {
      int leading = 0;
      for (Candidate* candidate : all) leading += candidate->elector->is_leader() ? 1 : 0;
      EXPECT_LE(leading, 1);
      return leading == 1 && !leader->elector->is_leader();
    }));
    EXPECT_NE(leader->why().find("could not be renewed in time: told so"), std::string::npos);
    leases.ignore(name, false);
  }
}

TEST(Elector, a_lease_that_was_taken_away_is_lost_and_one_that_was_labelled_is_not) {
  LeaseServer leases;
  Candidate a(leases, "a");
  ASSERT_TRUE(comes_true([&] { return a.elector->is_leader(); }));
  leases.edit([](Json& lease) { lease["metadata"]["labels"]["x"] = "y"; });
  const auto before = leases.lease()["spec"]["renewTime"];
  EXPECT_TRUE(comes_true([&] { return leases.lease()["spec"]["renewTime"] != before; }));
  EXPECT_EQ(a.lost, 0);
  EXPECT_EQ(leases.lease()["metadata"]["labels"]["x"], "y");
  leases.edit([](Json& lease) { lease["spec"]["holderIdentity"] = "thief"; });
  EXPECT_TRUE(comes_true([&] { return a.lost == 1; }));
  EXPECT_NE(a.why().find("belongs to 'thief'"), std::string::npos);
  EXPECT_TRUE(comes_true([&] { return a.gained == 2; }));  // the thief shows no sign of life
}

TEST(Elector, a_dead_holder_with_a_clock_in_the_future_is_followed) {
  LeaseServer leases;
  leases.edit([](Json& lease) {
    lease = {{"metadata", {{"name", "leader"}, {"namespace", "ns"}}},
             {"spec",
              {{"holderIdentity", "dead"},
               {"leaseDurationSeconds", 1},
               {"renewTime", "2999-01-01T00:00:00.000000Z"}}}};
  });
  Candidate a(leases, "a");
  EXPECT_TRUE(comes_true([&] { return a.elector->is_leader(); }));
}

TEST(Elector, can_go_away_in_the_middle) {
  LeaseServer leases;
  for (int i = 0; i < 20; ++i) {
    Candidate a(leases, "a");
    if (i % 2 == 0) comes_true([&] { return a.elector->is_leader(); });
    a.elector.reset();
  }
}

}  // namespace
}  // namespace gs::kube
