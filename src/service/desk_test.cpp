#include "service/desk.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "service/world_test.hpp"

namespace gs {
namespace {

std::string allocation(std::int64_t job, int attempt, int rank = 0) {
  return job_id(job) + "." + std::to_string(attempt) + "." + std::to_string(rank);
}

bool has_event(const DeskWorld& world, std::int64_t job, const std::string& type) {
  return std::any_of(world.rows.events.begin(), world.rows.events.end(),
                     [&](const EventRow& e) { return e.job == job && e.type == type; });
}

TEST(Desk, JobRunsAndCompletes) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 2));
  EXPECT_EQ(world.state(job), RunState::Scheduled);
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
  for (int i = 0; i < 720; ++i) {
    world.advance(seconds(5));
    world.heartbeats();
  }
  world.finish(allocation(job, 1), 0);
  EXPECT_EQ(world.state(job), RunState::Completed);
  EXPECT_EQ(world.row(job).exit_code, 0);
  EXPECT_EQ(world.row(job).gpu_ms, 2 * 3'600'000);
  EXPECT_TRUE(world.agents.at("n1").tasks.empty()) << "its end was not forgotten";
  EXPECT_EQ(world.rows.tenants.begin()->second.successful_jobs, 1);
}

TEST(Desk, TimeInWhichNobodyHeardOfItsEndIsNotTheJobs) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 2));
  world.report_all();
  const Instant started = world.now;
  world.task(allocation(job, 1))->end.ended_ago = minutes(600 - 30);
  world.advance(minutes(600));
  world.restart();
  world.finish(allocation(job, 1), 0);
  EXPECT_EQ(world.state(job), RunState::Completed);
  EXPECT_EQ(world.row(job).completed, started + minutes(30));
  EXPECT_EQ(world.row(job).gpu_ms, 2 * minutes(30).ms);
}

TEST(Desk, ExitCodeAndSignalAreTold) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  const std::int64_t fails = world.submit(DeskWorld::spec(tenant, 1));
  const std::int64_t dies = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  world.finish(allocation(fails, 1), 3);
  world.finish(allocation(dies, 1), 0, 11);
  EXPECT_EQ(world.state(fails), RunState::Failed);
  EXPECT_EQ(world.row(fails).exit_code, 3);
  EXPECT_EQ(world.row(fails).message, "exited with code 3");
  EXPECT_EQ(world.state(dies), RunState::Failed);
  EXPECT_EQ(world.row(dies).signal, 11);
}

TEST(Desk, JobThatNobodySawRunningHasAWholeRecord) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  world.finish(allocation(job, 1), 0);
  EXPECT_EQ(world.state(job), RunState::Completed);
  EXPECT_NE(world.row(job).started, Instant{});
  EXPECT_TRUE(has_event(world, job, "job.running"));
}

TEST(Desk, JobThatHasEndedIsNotChangedAndSaysSo) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  EXPECT_EQ(*world.desk->tenant_of(job), tenant);
  world.report_all();
  world.finish(allocation(job, 1), 0);
  EXPECT_EQ(world.desk->hold(job, true).error().code, ErrorCode::Conflict);
  EXPECT_EQ(world.desk->set_priority(job, 5).error().code, ErrorCode::Conflict);
  EXPECT_EQ(world.desk->cancel(job).error().code, ErrorCode::Conflict);
  EXPECT_EQ(world.desk->hold(job + 1, true).error().code, ErrorCode::NotFound);
  EXPECT_EQ(*world.desk->tenant_of(job), tenant);
  EXPECT_EQ(*world.desk->tenant_of(job + 1), std::nullopt);
}

TEST(Desk, CancelStopsWhatRunsAndKeepsItsGpusUntilItHasGone) {
  DeskWorld world;
  world.graceful = false;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t first = world.submit(DeskWorld::spec(tenant, 1));
  const std::int64_t second = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  ASSERT_TRUE(world.desk->cancel(first).ok());
  world.turn();
  EXPECT_TRUE(world.task(allocation(first, 1))->stop_asked);
  EXPECT_EQ(world.state(first), RunState::Running);
  EXPECT_EQ(world.state(second), RunState::Pending);
  DeskWorld::end_stopped(*world.task(allocation(first, 1)));
  world.report_all();
  EXPECT_EQ(world.state(first), RunState::Cancelled);
  EXPECT_EQ(world.state(second), RunState::Running);
  EXPECT_EQ(world.desk->cancel(first).error().code, ErrorCode::Conflict);
}

TEST(Desk, GangRunsOneProcessANodeAndFailsAsOne) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  world.add_agent("n2", 4);
  JobSpec spec = DeskWorld::spec(tenant, 8);
  spec.gang_scheduling = true;
  const std::int64_t job = world.submit(spec);
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
  ASSERT_EQ(world.running().size(), 2U);
  const AgentTask* leader = world.task(allocation(job, 1, 0));
  ASSERT_NE(leader, nullptr);
  EXPECT_EQ(leader->order.world_size, 2);
  EXPECT_EQ(leader->order.process.gpus.size(), 4U);
  EXPECT_EQ(leader->order.master_addr, leader->order.process.node + ".example");
  world.finish(allocation(job, 1, 1), 7);
  EXPECT_EQ(world.state(job), RunState::Failed);
  EXPECT_TRUE(world.running().empty());
  EXPECT_EQ(world.row(job).exit_code, 7);
}

TEST(Desk, GangThatLosesANodeStartsOverAsAWhole) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  for (const char* name : {"n1", "n2", "n3"}) world.add_agent(name, 2);
  JobSpec spec = DeskWorld::spec(tenant, 4);
  spec.gang_scheduling = true;
  spec.nodes = 2;
  const std::int64_t job = world.submit(spec);
  world.report_all();
  ASSERT_EQ(world.state(job), RunState::Running);
  const std::string lost = world.task(allocation(job, 1, 1))->order.process.node;
  world.agents.at(lost).connected = false;
  for (int i = 0; i < 20; ++i) {
    world.advance(seconds(5));
    world.heartbeats();
  }
  // The lost agent has stopped by itself what it ran, long before.
  world.agents.at(lost).tasks.clear();
  world.report_all();
  EXPECT_EQ(world.row(job).attempt, 2);
  EXPECT_EQ(world.state(job), RunState::Running);
  for (const std::string& one : world.running()) EXPECT_TRUE(one.starts_with(job_id(job) + ".2."));
}

TEST(Desk, MoreImportantJobPreemptsAndTheVictimGoesOnLater) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t low = world.submit(DeskWorld::spec(tenant, 1, 100));
  world.report_all();
  world.advance(minutes(1));
  world.heartbeats();
  const std::int64_t high = world.submit(DeskWorld::spec(tenant, 1, 2000));
  world.report_all();
  EXPECT_EQ(world.state(low), RunState::Preempted);
  EXPECT_EQ(world.row(low).preempted_count, 1);
  EXPECT_EQ(world.state(high), RunState::Running);
  EXPECT_TRUE(has_event(world, low, "job.preempted"));
  world.finish(allocation(high, 1), 0);
  EXPECT_EQ(world.state(low), RunState::Running);
  EXPECT_EQ(world.row(low).attempt, 2);
}

TEST(Desk, StartsOverWithoutStartingAnythingTwice) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  const std::int64_t runs = world.submit(DeskWorld::spec(tenant, 2));
  JobSpec gang = DeskWorld::spec(tenant, 2);
  gang.gang_scheduling = true;
  const std::int64_t together = world.submit(gang);
  const std::int64_t waits = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  world.restart();
  EXPECT_EQ(world.desk->count(RunState::Running), 2);
  EXPECT_EQ(world.desk->count(RunState::Pending), 1);
  world.register_agent("n1");
  world.report_all();
  EXPECT_EQ(world.row(runs).attempt, 1);
  EXPECT_EQ(world.row(together).attempt, 1);
  EXPECT_EQ(world.state(waits), RunState::Pending);
  world.finish(allocation(runs, 1), 0);
  EXPECT_EQ(world.state(runs), RunState::Completed);
  EXPECT_EQ(world.state(waits), RunState::Running);
}

TEST(Desk, OrderThatNeverArrivedIsRepeated) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  world.agents.at("n1").connected = false;  // the order is lost on its way
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  EXPECT_EQ(world.state(job), RunState::Scheduled);
  EXPECT_TRUE(world.running().empty());
  world.register_agent("n1");
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
  EXPECT_EQ(world.row(job).attempt, 1);
}

TEST(Desk, TaskThatNobodyKnowsIsStopped) {
  DeskWorld world;
  world.add_tenant();
  world.add_agent("n1", 1);
  AgentTask stray;
  stray.order.process.allocation = "job-5.1.0";
  world.agents.at("n1").tasks["job-5.1.0"] = stray;
  world.register_agent("n1");
  EXPECT_TRUE(world.running().empty());
}

TEST(Desk, TaskThatNobodyKnowsHoldsItsGpusUntilItHasGone) {
  DeskWorld world;
  world.graceful = false;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 2);
  AgentTask stray;
  stray.order.process.allocation = "job-5.1.0";
  stray.order.process.gpus = {0};
  world.agents.at("n1").tasks["job-5.1.0"] = stray;
  world.restart();
  world.register_agent("n1");
  EXPECT_TRUE(world.task("job-5.1.0")->stop_asked);
  const std::int64_t first = world.submit(DeskWorld::spec(tenant, 1));
  const std::int64_t second = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  EXPECT_EQ(world.task(allocation(first, 1))->order.process.gpus, std::vector<int>{1});
  EXPECT_EQ(world.state(second), RunState::Pending);
  // That the GPU itself is well does not make it free.
  world.desk->begin(world.now);
  NodeReport report;
  report.gpus.resize(2);
  report.gpus[1].index = 1;
  report.gpus[0].temperature_c = report.gpus[1].temperature_c = 50;
  ASSERT_TRUE(world.desk->heartbeat("n1", report).ok());
  world.turn();
  world.register_agent("n1");
  EXPECT_EQ(world.state(second), RunState::Pending);
  DeskWorld::end_stopped(*world.task("job-5.1.0"));
  world.report_all();
  EXPECT_EQ(world.state(second), RunState::Running);
  EXPECT_EQ(world.task(allocation(second, 1))->order.process.gpus, std::vector<int>{0});
}

TEST(Desk, OrderThatNeverArrivedIsNotRepeatedOntoAGpuThatSomebodyElseHolds) {
  DeskWorld world;
  world.graceful = false;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 2);
  world.agents.at("n1").connected = false;  // the order is lost on its way
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 2));
  ASSERT_EQ(world.state(job), RunState::Scheduled);
  AgentTask stray;
  stray.order.process.allocation = "job-5.1.0";
  stray.order.process.gpus = {1};
  world.agents.at("n1").tasks["job-5.1.0"] = stray;
  world.register_agent("n1");
  world.report_all();
  EXPECT_EQ(world.running(), std::vector<std::string>{"job-5.1.0"});
  EXPECT_EQ(world.state(job), RunState::Pending);
  DeskWorld::end_stopped(*world.task("job-5.1.0"));
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
}

TEST(Desk, AgentOfTheSameNameWaitsUntilTheFirstHasGone) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  AgentInMemory& first = world.agents.at("n1");
  first.row.instance = "first";
  world.register_agent("n1");
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  NodeRow row = first.row;
  row.instance = "second";
  const auto try_second = [&] {
    world.desk->begin(world.now);
    Status taken = world.desk->registered(row, {});
    world.turn();
    return taken;
  };
  Status refused = try_second();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Conflict);
  EXPECT_NE(refused.error().message.find("--node-id"), std::string::npos);
  EXPECT_EQ(world.desk->heartbeat("n1", {}, "second").error().code, ErrorCode::NotFound);
  EXPECT_TRUE(world.desk->heartbeat("n1", {}, "first").ok());
  // The first has fallen silent, but what it started may still run; nor does a restart forget.
  first.connected = false;
  world.advance(world.options.offline_after + seconds(1));
  world.restart();
  EXPECT_FALSE(try_second().ok());
  EXPECT_EQ(world.state(job), RunState::Running);
  world.advance(world.options.lease + world.options.lease_margin);
  first.tasks.clear();
  ASSERT_TRUE(try_second().ok());
  EXPECT_FALSE(world.desk->heartbeat("n1", {}, "first").ok());
  EXPECT_EQ(world.row(job).attempt, 2);
}

TEST(Desk, AgentOfTheSameNameTakesOverAtOnceWhereNothingCanRunTwice) {
  DeskWorld world;
  world.add_agent("n1", 1);
  NodeRow row = world.agents.at("n1").row;
  world.agents.at("n1").row.instance = "first";
  world.register_agent("n1");
  world.advance(world.options.offline_after);
  world.desk->begin(world.now);
  row.instance = "second";
  EXPECT_TRUE(world.desk->registered(row, {}).ok());
}

// The node is silent for so long that it counts as lost; meanwhile its job ends.
std::int64_t job_that_ends_unheard(DeskWorld& world, int exit_code) {
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  AgentTask& task = *world.task(allocation(job, 1));
  world.agents.at("n1").connected = false;
  task.running = false;
  task.end.state = TaskReport::State::Exited;
  task.end.exit_code = exit_code;
  task.end.ended_ago = seconds(60);
  return job;
}

void fall_silent(DeskWorld& world) {
  for (int i = 0; i < 20; ++i) {
    world.advance(seconds(5));
    world.heartbeats();
  }
}

TEST(Desk, EndThatIsToldLateCountsIfTheJobHasNotStartedAgain) {
  for (const int exit_code : {0, 3}) {
    DeskWorld world;
    const std::int64_t job = job_that_ends_unheard(world, exit_code);
    fall_silent(world);
    ASSERT_EQ(world.state(job), RunState::Pending);
    if (exit_code == 3) world.restart();
    world.register_agent("n1");
    world.report_all();
    EXPECT_EQ(world.state(job), exit_code == 0 ? RunState::Completed : RunState::Failed);
    EXPECT_EQ(world.row(job).exit_code, exit_code);
    EXPECT_EQ(world.row(job).attempt, 1);
    EXPECT_EQ(world.row(job).completed, world.now - seconds(60));
    EXPECT_TRUE(world.agents.at("n1").tasks.empty()) << "its end was not forgotten";
    EXPECT_EQ(world.desk->live_jobs(), 0U);
  }
}

TEST(Desk, EndThatIsToldTooLateChangesNothing) {
  DeskWorld world;
  const std::int64_t job = job_that_ends_unheard(world, 0);
  world.add_agent("n2", 1);
  fall_silent(world);
  world.report_all();
  ASSERT_EQ(world.row(job).attempt, 2);
  world.register_agent("n1");
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
  EXPECT_TRUE(world.agents.at("n1").tasks.empty());
}

TEST(Desk, CancelUnderWaySurvivesARestart) {
  DeskWorld world;
  world.graceful = false;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  ASSERT_TRUE(world.desk->cancel(job).ok());
  world.turn();
  world.restart();
  world.register_agent("n1");
  EXPECT_EQ(world.state(job), RunState::Running);
  DeskWorld::end_stopped(*world.task(allocation(job, 1)));
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Cancelled);
}

TEST(Desk, DependentsWaitAndFallWithWhatTheyNeed) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 4);
  const std::int64_t first = world.submit(DeskWorld::spec(tenant, 1));
  JobSpec ok = DeskWorld::spec(tenant, 1);
  ok.depends_on = {{job_id(first), false}};
  JobSpec any = ok;
  any.depends_on = {{job_id(first), true}};
  const std::int64_t after_ok = world.submit(ok);
  const std::int64_t after_any = world.submit(any);
  world.report_all();
  EXPECT_EQ(world.state(after_ok), RunState::Pending);
  EXPECT_EQ(world.state(after_any), RunState::Pending);
  world.restart();
  world.register_agent("n1");
  world.finish(allocation(first, 1), 1);
  EXPECT_EQ(world.state(after_ok), RunState::Cancelled);
  EXPECT_EQ(world.row(after_ok).message, "depends on " + job_id(first) + ", which has failed");
  EXPECT_EQ(world.state(after_any), RunState::Running);
  EXPECT_EQ(world.desk->submit(ok).error().code, ErrorCode::Conflict);
}

TEST(Desk, RequeueStartsARunningAndAnEndedJobOver) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 1));
  world.report_all();
  ASSERT_TRUE(world.desk->requeue(job).ok());
  world.turn();
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
  EXPECT_EQ(world.row(job).attempt, 2);
  world.finish(allocation(job, 2), 1);
  ASSERT_EQ(world.state(job), RunState::Failed);
  ASSERT_TRUE(world.desk->requeue(job).ok());
  world.turn();
  world.report_all();
  EXPECT_EQ(world.row(job).attempt, 3);
  EXPECT_EQ(world.state(job), RunState::Running);
}

TEST(Desk, HeldJobWaitsUntilItIsReleased) {
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  world.add_agent("n1", 1);
  JobSpec spec = DeskWorld::spec(tenant, 1);
  spec.held = true;
  const std::int64_t job = world.submit(spec);
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Pending);
  world.restart();
  world.register_agent("n1");
  EXPECT_EQ(world.state(job), RunState::Pending);
  ASSERT_TRUE(world.desk->hold(job, false).ok());
  world.turn();
  EXPECT_EQ(world.state(job), RunState::Scheduled);
}

TEST(Desk, MoreThanTheQuotaIsRefusedInWords) {
  DeskWorld world;
  const std::string tenant = world.add_tenant(4);
  world.add_agent("n1", 8);
  world.submit(DeskWorld::spec(tenant, 2));
  Result<std::int64_t> job = world.desk->submit(DeskWorld::spec(tenant, 8));
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, ErrorCode::QuotaExceeded);
  EXPECT_EQ(job.error().message,
            "quota exceeded for tenant " + tenant + ": GPUs requested=8, quota=4, current=2");
}

TEST(Desk, NarrowerQuotaDoesNotDropAcceptedJobsOverARestart) {
  DeskWorld world;
  const std::string tenant = world.add_tenant(4);
  world.add_agent("n1", 4);
  const std::int64_t job = world.submit(DeskWorld::spec(tenant, 4));
  world.report_all();
  TenantSpec spec = world.rows.tenants.begin()->second.spec;
  spec.max_gpus = 1;
  ASSERT_TRUE(world.desk->update_tenant(*tenant_seq(tenant), spec).ok());
  world.turn();
  world.restart();
  world.register_agent("n1");
  world.report_all();
  EXPECT_EQ(world.state(job), RunState::Running);
}

// Agents vanish and return, tasks fail and ignore their end, the desk dies, people change their
// minds: whatever happens, no GPU runs two processes, no job runs twice, and in the end every job
// has ended.
class RandomDesk : public testing::TestWithParam<int> {};

TEST_P(RandomDesk, KeepsItsPromises) {
  Rng rng(static_cast<std::uint64_t>(GetParam()));
  DeskWorld world;
  const std::string tenant = world.add_tenant();
  for (int i = 0; i < 4; ++i) world.add_agent("n" + std::to_string(i), 4);
  std::vector<std::int64_t> jobs;
  std::map<std::string, Instant> silent_since;
  const auto pick_task = [&]() -> AgentTask* {
    const auto running = world.running();
    if (running.empty()) return nullptr;
    return world.task(running[rng.below(running.size())]);
  };
  for (int step = 0; step < 300; ++step) {
    world.advance(milliseconds(static_cast<std::int64_t>(rng.below(4000))));
    world.graceful = rng.chance(0.7);
    switch (rng.below(9)) {
      case 0:
      case 1: {
        JobSpec spec = DeskWorld::spec(tenant, 1 + static_cast<int>(rng.below(6)),
                                       static_cast<int>(rng.below(4)) * 500);
        spec.gang_scheduling = spec.gpu_count > 4 || rng.chance(0.3);
        if (!jobs.empty() && rng.chance(0.2))
          if (const std::int64_t other = jobs[rng.below(jobs.size())];
              !is_final(world.state(other)))
            spec.depends_on = {{job_id(other), rng.chance(0.5)}};
        jobs.push_back(world.submit(spec));
        break;
      }
      case 2:
        if (AgentTask* task = pick_task()) {
          task->running = false;
          task->end.state = TaskReport::State::Exited;
          task->end.exit_code = rng.chance(0.7) ? 0 : 1;
        }
        break;
      case 3:
        if (AgentTask* task = pick_task(); task != nullptr && task->stop_asked)
          DeskWorld::end_stopped(*task);
        break;
      case 4: {
        const std::string name = "n" + std::to_string(rng.below(4));
        if (world.agents.at(name).connected) {
          world.agents.at(name).connected = false;
          silent_since[name] = world.now;
        } else {
          world.register_agent(name);
        }
        break;
      }
      case 5:
        world.restart();
        for (auto& [name, agent] : world.agents)
          if (agent.connected) world.register_agent(name);
        break;
      case 6:
        if (!jobs.empty()) {
          const std::int64_t job = jobs[rng.below(jobs.size())];
          world.desk->begin(world.now);
          if (rng.chance(0.5))
            (void)world.desk->cancel(job);
          else
            (void)world.desk->requeue(job);
          world.turn();
        }
        break;
      case 7:
        world.report_all();
        break;
      default:
        break;
    }
    // An agent out of touch for its lease stops what it runs.
    for (auto& [name, agent] : world.agents)
      if (!agent.connected && world.now - silent_since[name] >= world.options.lease)
        for (auto& [allocation, task] : agent.tasks)
          if (task.running) {
            DeskWorld::end_stopped(task);
            task.end.stopped = false;
            task.end.lease_lost = true;
          }
    world.heartbeats();
    if (HasFailure()) FAIL() << "at step " << step;
  }
  world.graceful = true;
  for (int round = 0; round < 400 && world.desk->live_jobs() > 0; ++round) {
    world.advance(seconds(5));
    for (auto& [name, agent] : world.agents) {
      if (!agent.connected) world.register_agent(name);
      for (auto& [allocation, task] : agent.tasks) {
        if (!task.running) continue;
        task.running = false;
        task.end.state = TaskReport::State::Exited;
        task.end.stopped = task.stop_asked;
      }
    }
    world.heartbeats();
    world.report_all();
  }
  EXPECT_EQ(world.desk->live_jobs(), 0U);
  for (const std::int64_t job : jobs) EXPECT_TRUE(is_final(world.state(job))) << job_id(job);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDesk, testing::Range(1, 41));

}  // namespace
}  // namespace gs
