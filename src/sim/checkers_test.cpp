// Each checker against a small story in which an engine does the wrong thing.
#include "sim/checkers.hpp"

#include <gtest/gtest.h>

#include "model/sample_test.hpp"

namespace gs {
namespace {

class Story : public testing::Test {
 protected:
  Story() {
    tell(SetTopology{{"leaf"}});
    for (const std::string name : {"a1", "a2", "b1"}) tell(PutNode{node(name)});
    Tenant tenant;
    tenant.id = "t";
    tell(PutTenant{tenant});
  }

  static Node node(const std::string& name) {
    Node node = sample_node(name, 4);
    node.domain = {name.substr(0, 1)};
    node.capacity.cpu_milli = 8'000;
    return node;
  }
  static Job job(const std::string& id, int tasks, int gpus) {
    Job job;
    job.id = id;
    job.tenant = "t";
    Group group;
    group.count = tasks;
    group.request.gpu.count = gpus;
    job.groups = {group};
    return job;
  }
  static TaskPlace at(const std::string& job, int rank, const std::string& node,
                      std::vector<int> gpus) {
    return {{job, 0, rank}, node, std::move(gpus), {}};
  }

  void run_j_before_urgent_k() {
    submit(job("j", 1, 1));
    Job urgent = job("k", 1, 1);
    urgent.priority = 900;
    submit(urgent);
    start("j", {at("j", 0, "a1", {0})});
  }

  void tell(Command command, Effects effects = {}) {
    checkers.observe({now, std::move(command), std::nullopt, std::move(effects)});
  }
  void tick(Effects effects) {
    checkers.observe({now, std::nullopt, std::nullopt, std::move(effects)});
  }
  void submit(const Job& job) { tell(SubmitJob{job}, {JobChanged{job.id, "waiting", {}}}); }
  void start(const std::string& job, std::vector<TaskPlace> places) {
    tick({StartTasks{job, std::move(places)}, JobChanged{job, "starting", {}}});
  }
  void rest() { checkers.at_rest(now); }
  void expect(const std::string& checker, const std::string& words) {
    ASSERT_TRUE(checkers.finding()) << "nothing was found";
    EXPECT_EQ(checkers.finding()->checker, checker);
    EXPECT_NE(checkers.finding()->text.find(words), std::string::npos) << checkers.finding()->text;
  }
  void expect_nothing() {
    EXPECT_FALSE(checkers.finding())
        << checkers.finding()->checker << ": " << checkers.finding()->text;
  }

  Checkers checkers;
  Instant now;
};

TEST_F(Story, of_two_jobs_side_by_side_is_fine) {
  submit(job("j", 2, 2));
  submit(job("k", 1, 2));
  start("j", {at("j", 0, "a1", {0, 1}), at("j", 1, "a2", {0, 1})});
  start("k", {at("k", 0, "a1", {2, 3})});
  rest();
  checkers.check_idle_room();
  expect_nothing();
}

TEST_F(Story, of_a_gpu_given_twice) {
  submit(job("j", 1, 1));
  submit(job("k", 1, 1));
  start("j", {at("j", 0, "a1", {0})});
  start("k", {at("k", 0, "a1", {0})});
  expect("places", "gpu 0: 2 tasks");
}

TEST_F(Story, of_a_gpu_given_away_before_it_is_free) {
  submit(job("j", 1, 1));
  submit(job("k", 1, 1));
  start("j", {at("j", 0, "a1", {0})});
  tell(CancelJob{"j"},
       {StopTasks{"j", {{"j", 0, 0}}, StopReason::Cancelled, ""}, JobChanged{"j", "stopping", {}}});
  start("k", {at("k", 0, "a1", {0})});
  expect("places", "gpu 0: 2 tasks");
}

TEST_F(Story, of_too_much_cpu) {
  Job big = job("j", 2, 1);
  big.groups[0].request.resources.cpu_milli = 5'000;
  submit(big);
  start("j", {at("j", 0, "a1", {0}), at("j", 1, "a1", {1})});
  expect("places", "10000 of 8000 cpu_milli");
}

TEST_F(Story, of_a_hot_gpu) {
  submit(job("j", 1, 1));
  tell(ReportGpu{"a1", 0, Health::Healthy, 80});
  tell(ReportGpu{"a1", 0, Health::Healthy, 72});  // cooler, and not cool
  start("j", {at("j", 0, "a1", {0})});
  expect("places", "too hot");
}

TEST_F(Story, of_a_cordoned_node) {
  submit(job("j", 1, 1));
  tell(CordonNode{"a1", true, false});
  start("j", {at("j", 0, "a1", {0})});
  expect("places", "cordoned");
}

TEST_F(Story, of_half_a_gang) {
  submit(job("j", 2, 1));
  start("j", {at("j", 0, "a1", {0})});
  expect("gangs", "fewer tasks than its minimum");
}

TEST_F(Story, of_a_gang_that_runs_on_without_a_member) {
  submit(job("j", 2, 1));
  start("j", {at("j", 0, "a1", {0}), at("j", 1, "b1", {0})});
  tell(RemoveNode{"b1"});
  expect_nothing();  // it may be mended before the world comes to rest
  rest();
  expect("gangs", "below its minimum");
}

TEST_F(Story, of_a_gang_torn_between_two_leaves) {
  Job gang = job("j", 2, 1);
  gang.groups[0].topology.required_level = "leaf";
  submit(gang);
  start("j", {at("j", 0, "a1", {0}), at("j", 1, "b1", {0})});
  expect("gangs", "must lie in one leaf");
}

TEST_F(Story, of_a_slice_torn_apart) {
  Job gang = job("j", 4, 1);
  gang.groups[0].slices = {{"node", 2}};
  submit(gang);
  start("j", {at("j", 0, "a1", {0}), at("j", 1, "a2", {0}), at("j", 2, "a2", {1}),
              at("j", 3, "a2", {2})});
  expect("gangs", "packs of 2");
}

TEST_F(Story, of_a_limit_exceeded) {
  Tenant tenant;
  tenant.id = "t";
  tenant.limit.gpu_milli = 1'000;
  tell(PutTenant{tenant});
  submit(job("j", 1, 2));
  start("j", {at("j", 0, "a1", {0, 1})});
  expect("quota", "2000 gpu_milli of 1000");
}

TEST_F(Story, of_a_limit_by_model) {
  Node other = node("b1");
  for (Gpu& gpu : other.gpus) gpu.model = "other";
  tell(PutNode{other});
  Job elastic = job("j", 3, 1);
  elastic.groups[0].min = 1;
  submit(elastic);
  start("j", {at("j", 0, "a1", {0})});
  Tenant tenant;
  tenant.id = "t";
  tenant.limit.gpus_by_model = {{node("a1").gpus[0].model, 0}};
  tell(PutTenant{tenant});
  now = now + seconds(1);
  start("j", {at("j", 1, "b1", {0})});
  expect_nothing();  // what runs was within the limit when it started
  start("j", {at("j", 2, "a1", {1})});
  expect("quota", "2000 milli of 0");
}

TEST_F(Story, of_an_eviction_for_nothing) {
  run_j_before_urgent_k();
  tick({StopTasks{"j", {{"j", 0, 0}}, StopReason::Preempted, "k"},
        NominateTasks{"k", {at("k", 0, "a1", {1})}}});
  expect("evictions", "fits beside it");
}

TEST_F(Story, of_an_eviction_for_nobody) {
  run_j_before_urgent_k();
  tick({StopTasks{"j", {{"j", 0, 0}}, StopReason::Preempted, "k"}});
  expect("evictions", "gets no place");
}

TEST_F(Story, of_an_eviction_by_an_equal) {
  submit(job("j", 1, 4));
  submit(job("k", 1, 4));
  start("j", {at("j", 0, "a1", {0, 1, 2, 3})});
  tick({StopTasks{"j", {{"j", 0, 0}}, StopReason::Preempted, "k"},
        NominateTasks{"k", {at("k", 0, "a1", {0, 1, 2, 3})}}});
  expect("evictions", "priority 500 against 500");
}

TEST_F(Story, of_an_eviction_before_its_time) {
  Job shielded = job("j", 1, 4);
  shielded.min_runtime = minutes(1);
  submit(shielded);
  Job urgent = job("k", 1, 4);
  urgent.priority = 900;
  submit(urgent);
  start("j", {at("j", 0, "a1", {0, 1, 2, 3})});
  now = now + seconds(59);
  tick({StopTasks{"j", {{"j", 0, 0}}, StopReason::Preempted, "k"},
        NominateTasks{"k", {at("k", 0, "a1", {0, 1, 2, 3})}}});
  expect("evictions", "with a minimum of 1m");
}

TEST_F(Story, of_an_end_that_leaves_tasks_behind) {
  submit(job("j", 1, 1));
  start("j", {at("j", 0, "a1", {0})});
  tell(CancelJob{"j"}, {JobChanged{"j", "cancelled", {}}});
  expect("states", "hold on");
}

TEST_F(Story, of_a_time_out_that_passes_unnoticed) {
  Job impatient = job("j", 1, 1);
  impatient.start_timeout = seconds(10);
  submit(impatient);
  now = now + seconds(11);
  rest();
  expect("states", "with a time-out of 10s");
}

TEST_F(Story, of_a_job_that_waits_beside_free_gpus) {
  submit(job("j", 1, 1));
  rest();
  checkers.check_idle_room();
  expect("progress", "j waits although it fits");
}

TEST_F(Story, of_news_that_is_refused) {
  submit(job("j", 1, 1));
  start("j", {at("j", 0, "a1", {0})});
  checkers.observe(
      {now, TaskEnded{{"j", 0, 0}, Outcome::Succeeded}, Error{ErrorCode::NotFound, "who?"}, {}});
  expect("facts", "refused: who?");
}

TEST_F(Story, of_a_task_that_dies_with_its_device) {
  submit(job("j", 1, 1));
  start("j", {at("j", 0, "a1", {3})});
  Node smaller = node("a1");
  smaller.gpus.pop_back();
  tell(PutNode{smaller}, {JobChanged{"j", "waiting", {}}});
  start("j", {at("j", 0, "a1", {0})});
  rest();
  expect_nothing();
}

}  // namespace
}  // namespace gs
