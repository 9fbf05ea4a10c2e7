// The one writer: what it answers is durable, what can't be recorded is not answered, and who does
// not lead says so.
#include "service/service.hpp"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "service/world_test.hpp"

namespace gs {
namespace {

// A store whose troubles the test decides.
class TroubledStore : public Store {
 public:
  Result<bool> try_lead() override { return may_lead.load(); }
  Status renew() override { return ok_status(); }
  Result<Loaded> load() override {
    const std::lock_guard lock(mutex);
    return rows.load();
  }
  Status commit(const Batch& batch) override {
    if (overtaken) return Error{ErrorCode::Conflict, "another one leads"};
    if (failures > 0) {
      --failures;
      return Error{ErrorCode::Unavailable, "out of reach"};
    }
    const std::lock_guard lock(mutex);
    rows.apply(batch);
    return ok_status();
  }
  Result<std::optional<KeyRow>> find_key(const std::string&, const std::string&) override {
    return std::optional<KeyRow>{};
  }
  Result<std::optional<JobRow>> find_job(std::int64_t seq) override { return rows.find(seq); }
  Result<std::int64_t> forget(const Retention&, Instant) override { return std::int64_t{0}; }

  std::size_t jobs() const {
    const std::lock_guard lock(mutex);
    return rows.jobs.size();
  }

  std::atomic<bool> may_lead{true}, overtaken{false};
  std::atomic<int> failures{0};
  mutable std::mutex mutex;
  RowsInMemory rows;
};

class SilentFleet : public Fleet {
 public:
  void send(const Outgoing&) override {}
};

Instant wall_clock() {
  return Instant{std::chrono::duration_cast<std::chrono::milliseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()};
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    ServiceOptions options;
    options.desk = DeskWorld::usual_options();
    options.interval = milliseconds(20);
    options.inbox = 1000;
    service_ = std::make_unique<Service>(options, store_, fleet_, wall_clock);
    service_->start();
  }

  template <typename F>
  auto ask(F f) {
    using Answer = std::invoke_result_t<F&, Desk&>;
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = promise->get_future();
    EXPECT_TRUE(
        service_->ask(f, [promise](Answer result) { promise->set_value(std::move(result)); }));
    return answer;
  }

  std::string add_tenant() {
    TenantSpec spec;
    spec.name = "team";
    spec.max_gpus = spec.max_gpu_memory_mb = spec.max_cpu_cores = spec.max_memory_mb =
        spec.max_concurrent_jobs = 1000;
    const auto row = ask([spec](Desk& desk) { return desk.create_tenant(spec); }).get();
    EXPECT_TRUE(row.ok());
    return tenant_id(row->seq);
  }

  TroubledStore store_;
  SilentFleet fleet_;
  std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, AnswersOnlyWhatIsRecorded) {
  const std::string tenant = add_tenant();
  const JobSpec spec = DeskWorld::spec(tenant, 1);
  store_.failures = 3;  // the database is away for a moment
  auto answer = ask([spec](Desk& desk) { return desk.submit(spec); });
  ASSERT_TRUE(answer.get().ok());
  EXPECT_EQ(store_.failures, 0);
  EXPECT_EQ(store_.jobs(), 1U);
}

TEST_F(ServiceTest, ManyThreadsAtOnce) {
  const std::string tenant = add_tenant();
  const JobSpec spec = DeskWorld::spec(tenant, 1);
  std::vector<std::thread> threads;
  std::atomic<int> accepted{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) {
        accepted += ask([spec](Desk& desk) { return desk.submit(spec); }).get().ok();
        (void)service_->view()->waiting();
        (void)service_->events().read(0, {}, 10);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 400);
  EXPECT_EQ(store_.jobs(), 400U);
  EXPECT_EQ(service_->view()->waiting(), 400);
}

TEST_F(ServiceTest, OvertakenLeaderAcknowledgesNothingAndStartsOver) {
  const std::string tenant = add_tenant();
  const JobSpec spec = DeskWorld::spec(tenant, 1);
  store_.may_lead = false;
  store_.overtaken = true;
  const auto refused = ask([spec](Desk& desk) { return desk.submit(spec); }).get();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_FALSE(service_->leads());
  EXPECT_EQ(store_.jobs(), 0U);
  store_.overtaken = false;
  store_.may_lead = true;
  for (int i = 0; i < 500 && !service_->leads(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(ask([spec](Desk& desk) { return desk.submit(spec); }).get().ok());
  EXPECT_EQ(store_.jobs(), 1U);
}

TEST_F(ServiceTest, FullInboxSaysNo) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  auto blocked = ask([open](Desk&) -> Status {
    open.wait();
    return ok_status();
  });
  bool full = false;
  for (int i = 0; i < 5000 && !full; ++i)
    full = !service_->ask([](Desk&) { return ok_status(); }, [](const Status&) {});
  gate.set_value();
  EXPECT_TRUE(full);
  EXPECT_TRUE(blocked.get().ok());
}

TEST_F(ServiceTest, StopFinishesWhatWasAsked) {
  const std::string tenant = add_tenant();
  const JobSpec spec = DeskWorld::spec(tenant, 1);
  std::vector<std::future<Result<std::int64_t>>> answers;
  for (int i = 0; i < 50; ++i)
    answers.push_back(ask([spec](Desk& desk) { return desk.submit(spec); }));
  service_->stop();
  for (auto& answer : answers) EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(store_.jobs(), 50U);
}

}  // namespace
}  // namespace gs
