#include "sim/shrink.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/check.hpp"
#include "sim/apart.hpp"

namespace gs {
namespace {

TEST(Apart, an_answer_comes_back) {
  const ApartResult result = run_apart([](volatile std::uint64_t* progress) {
    *progress = 7;
    return std::string(200'000, 'x');
  });
  EXPECT_FALSE(result.died);
  EXPECT_EQ(result.answer.size(), 200'000U);
  EXPECT_EQ(result.progress, 7U);
}

TEST(Apart, a_death_is_told_with_its_last_words) {
  const ApartResult result = run_apart([](volatile std::uint64_t* progress) {
    *progress = 3;
    CHECK_MSG(*progress == 4, "on purpose");
    return std::string{};
  });
  EXPECT_TRUE(result.died);
  EXPECT_NE(result.last_words.find("on purpose"), std::string::npos);
  EXPECT_EQ(result.progress, 3U);
}

TEST(Apart, all_are_run_and_reported_once) {
  std::vector<int> seen(10, 0);
  run_all_apart(
      10, 3, [](std::size_t i, volatile std::uint64_t*) { return std::to_string(i); },
      [&](std::size_t i, const ApartResult& result) {
        EXPECT_EQ(result.answer, std::to_string(i));
        ++seen[i];
        return true;
      });
  EXPECT_EQ(seen, std::vector<int>(10, 1));
}

Script script_of(std::size_t cancels) {
  Script script;
  for (std::size_t i = 0; i < cancels; ++i)
    script.actions.push_back({Instant{} + seconds(static_cast<std::int64_t>(i)),
                              CancelJob{"x" + std::to_string(i)},
                              {}});
  return script;
}

bool cancels(const Script& script, const std::string& id) {
  return std::any_of(script.actions.begin(), script.actions.end(), [&](const Action& action) {
    const auto* command = std::get_if<Command>(&action.what);
    const auto* cancel = command == nullptr ? nullptr : std::get_if<CancelJob>(command);
    return cancel != nullptr && cancel->id == id;
  });
}

TEST(Shrink, leaves_only_the_actions_that_matter_and_no_time_between_them) {
  const auto failure = [](const Script& script) {
    return cancels(script, "x3") && cancels(script, "x17") ? std::string("both") : std::string{};
  };
  const Shrunk shrunk = shrink(script_of(40), failure);
  EXPECT_EQ(shrunk.failure, "both");
  ASSERT_EQ(shrunk.script.actions.size(), 2U);
  EXPECT_EQ(shrunk.script.actions[1].at, Instant{});
  EXPECT_LT(shrunk.attempts, 100);
}

TEST(Shrink, another_failure_is_not_the_same_failure) {
  const auto failure = [](const Script& script) {
    if (cancels(script, "x1") && cancels(script, "x2")) return std::string("first");
    return cancels(script, "x1") ? std::string("second") : std::string{};
  };
  EXPECT_EQ(shrink(script_of(10), failure).script.actions.size(), 2U);
}

TEST(Shrink, makes_jobs_plain) {
  Job job;
  job.id = "j";
  job.priority = 1900;
  job.movable = true;
  Group group;
  group.count = 8;
  group.request.gpu.count = 4;
  group.topology.required_level = "leaf";
  job.groups = {group};
  Script script;
  script.actions.push_back({Instant{}, SubmitJob{job}, {}});
  const auto tasks = [](const Script& s) {
    const auto& submit = std::get<SubmitJob>(std::get<Command>(s.actions.at(0).what));
    return submit.job.groups[0].count;
  };
  const Shrunk shrunk = shrink(script, [&](const Script& s) {
    return !s.actions.empty() && tasks(s) >= 3 ? std::string("big") : std::string{};
  });
  const auto& plain = std::get<SubmitJob>(std::get<Command>(shrunk.script.actions[0].what)).job;
  EXPECT_EQ(plain.groups[0].count, 3);
  EXPECT_EQ(plain.priority, 500);
  EXPECT_FALSE(plain.movable);
  EXPECT_EQ(plain.groups[0].topology, TopologyWish{});
}

TEST(Shrink, of_many_jobs_the_last_few_are_tried_first) {
  Script script;
  for (int i = 0; i < 2000; ++i) {
    Job job;
    job.id = "j" + std::to_string(i);
    job.groups.resize(1);
    script.actions.push_back({Instant{}, SubmitJob{job}, {}});
  }
  const auto last_is_there = [](const Script& s) {
    const auto* command =
        s.actions.empty() ? nullptr : std::get_if<Command>(&s.actions.back().what);
    return command != nullptr && std::get<SubmitJob>(*command).job.id == "j1999"
               ? std::string("yes")
               : std::string{};
  };
  const Shrunk shrunk = shrink(script, last_is_there);
  EXPECT_EQ(shrunk.script.actions.size(), 1U);
  EXPECT_LT(shrunk.attempts, 60);
}

TEST(Shrink, told_to_stop_it_gives_the_smallest_so_far) {
  int asked = 0;
  const ShrinkLimits limits{3000, [&] { return ++asked > 10; }};
  const auto failure = [](const Script& script) {
    return cancels(script, "x3") && cancels(script, "x17") ? std::string("both") : std::string{};
  };
  const Shrunk shrunk = shrink(script_of(40), failure, limits);
  EXPECT_FALSE(shrunk.done);
  EXPECT_EQ(shrunk.failure, "both");
  EXPECT_LT(shrunk.script.actions.size(), 40U);
  EXPECT_GT(shrunk.script.actions.size(), 2U);
}

TEST(Shrink, what_does_not_fail_stays_as_it_is) {
  const Shrunk shrunk = shrink(script_of(5), failure_of);
  EXPECT_EQ(shrunk.failure, "");
  EXPECT_EQ(shrunk.script.actions.size(), 5U);
}

}  // namespace
}  // namespace gs
