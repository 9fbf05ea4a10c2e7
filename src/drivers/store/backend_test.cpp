#include "drivers/store/backend_test.hpp"

#include <fmt/format.h>

#include "drivers/store/postgres.hpp"
#include "drivers/store/sqlite.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

class Server final : public testing::Environment {
 public:
  void TearDown() override { server_.reset(); }
  PostgresServer* get() {
    if (!PostgresServer::is_installed()) return nullptr;
    if (!server_) server_ = std::make_unique<PostgresServer>();
    return server_.get();
  }

 private:
  std::unique_ptr<PostgresServer> server_;
};

Server* const kServer =
    static_cast<Server*>(testing::AddGlobalTestEnvironment(new Server));  // gtest owns it

}  // namespace

PostgresServer* shared_server() { return kServer->get(); }

void StoreTest::SetUp() {
  if (GetParam() == Backend::Sqlite) return;
  if (shared_server() == nullptr) GTEST_SKIP() << "PostgreSQL's server is not installed";
  ASSERT_TRUE(shared_server()->ok()) << "the server did not start";
  static int number = 0;
  database_ = "test" + std::to_string(++number);
  ASSERT_EQ(shared_server()->create_database(database_), 0);
}

SqliteSettings StoreTest::sqlite() const {
  SqliteSettings settings;
  settings.path = folder_ / "jobs.db";
  return settings;
}

Result<std::unique_ptr<Store>> StoreTest::try_open() {
  return GetParam() == Backend::Sqlite ? open_sqlite(sqlite()) : open_postgres(postgres());
}

std::unique_ptr<Store> StoreTest::open() {
  Result<std::unique_ptr<Store>> store = try_open();
  EXPECT_TRUE(store.ok()) << store.error().message;
  return std::move(*store);
}

std::unique_ptr<Store> StoreTest::lead() {
  std::unique_ptr<Store> store = open();
  const Result<bool> leads = store->try_lead();
  EXPECT_TRUE(leads.ok()) << leads.error().message;
  EXPECT_TRUE(*leads);
  return store;
}

std::unique_ptr<Reader> StoreTest::reader(int connections) {
  Result<std::unique_ptr<Reader>> reader = GetParam() == Backend::Sqlite
                                               ? read_sqlite(sqlite(), connections)
                                               : read_postgres(postgres(), connections);
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  return std::move(*reader);
}

std::unique_ptr<Session> StoreTest::session() {
  if (GetParam() == Backend::Sqlite) return std::move(*SqliteSession::open(sqlite(), false));
  return std::make_unique<PostgresSession>(postgres());
}

JobRow sample_job(std::int64_t seq) {
  JobRow job;
  job.seq = seq;
  job.tenant = "tenant-1";
  job.name = "job";
  job.spec = "{}";
  job.submitted = Instant{seq * 10};
  return job;
}

JobRow full_job(std::int64_t seq) {
  JobRow job = sample_job(seq);
  job.name = "n\"a'm\\e \xc3\xa9";
  job.gpu_count = 8;
  job.spec = R"({"a":"b\\c\n{},\"'"})";
  job.labels = {{"a", "1"}, {"b", "x,{}\"y"}};
  job.array_id = "job-77";
  job.state = RunState::Running;
  job.priority = -5;
  job.held = true;
  job.ending = Ending::Requeue;
  job.scheduled = Instant{11};
  job.started = Instant{12};
  job.completed = Instant{13};
  job.attempt = 3;
  job.preempted_count = 2;
  job.exit_code = 137;
  job.signal = 9;
  job.message = "why {it} \"ended\"";
  job.placement = R"([{"node":"n1"}])";
  job.gpu_ms = 1'234'567'890'123;
  return job;
}

TenantRow full_tenant(std::int64_t seq) {
  TenantRow tenant;
  tenant.seq = seq;
  tenant.spec.name = "team";
  tenant.spec.email = "a@b";
  tenant.spec.max_gpus = 16;
  tenant.spec.max_gpu_memory_mb = 1;
  tenant.spec.max_cpu_cores = 2;
  tenant.spec.max_memory_mb = 3;
  tenant.spec.max_concurrent_jobs = 4;
  tenant.spec.priority_tier = Tier::High;
  tenant.spec.fair_share_weight = 0.1;
  tenant.spec.max_gpus_by_model = {{"A100", 2}};
  tenant.active = true;
  tenant.created = Instant{5};
  tenant.updated = Instant{6};
  tenant.total_jobs = 7;
  tenant.successful_jobs = 8;
  tenant.failed_jobs = 9;
  tenant.gpu_ms = 10;
  tenant.total_cost = 0.1 + 0.2;
  tenant.current_gpu_milli = 2'500;
  tenant.current_gpu_memory_mb = 12;
  tenant.current_cpu_milli = 13;
  tenant.current_memory_mb = 14;
  tenant.current_jobs = 15;
  return tenant;
}

NodeRow full_node(const std::string& name) {
  NodeRow row;
  row.node.name = name;
  row.node.capacity = {64'000, 1'000'000, {}};
  row.node.gpus.resize(2);
  row.node.gpus[1].index = 1;
  row.node.gpus[0].uuid = "GPU-1";
  row.address = "10.0.0.1:80";
  row.version = "1.2";
  row.instance = "agent-7";
  row.container_runtime = "docker";
  row.simulated = true;
  row.draining = true;
  row.registered = Instant{99};
  return row;
}

EventRow sample_event(std::uint64_t id, const std::string& type, std::int64_t job,
                      const std::string& tenant) {
  EventRow event;
  event.id = id;
  event.time = Instant{static_cast<std::int64_t>(id) * 100};
  event.type = type;
  event.job = job;
  event.tenant = tenant;
  event.node = "n1";
  event.message = "m";
  event.data = R"({"x":1})";
  return event;
}

std::string text_of(const JobRow& job) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", job.seq,
                     job.tenant, job.name, job.gpu_count, job.spec, labels_text(job.labels),
                     job.array_id, job.submitted.ms, to_string(job.state), job.priority, job.held,
                     ending_word(job.ending), job.scheduled.ms, job.started.ms, job.completed.ms,
                     job.attempt, job.preempted_count, job.exit_code.value_or(-99), job.signal,
                     job.message, job.placement, job.gpu_ms);
}

std::string text_of(const TenantRow& t) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", t.seq, tenant_text(t.spec),
                     t.active, t.created.ms, t.updated.ms, t.total_jobs, t.successful_jobs,
                     t.failed_jobs, t.gpu_ms, t.total_cost, t.current_gpu_milli,
                     t.current_gpu_memory_mb, t.current_cpu_milli, t.current_memory_mb,
                     t.current_jobs);
}

std::string text_of(const NodeRow& n) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", node_text(n.node), n.address, n.version,
                     n.instance, n.container_runtime, n.simulated, n.cordoned, n.draining,
                     n.registered.ms);
}

std::string text_of(const EventRow& e) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", e.id, e.time.ms, e.type, e.job, e.tenant, e.node,
                     e.message, e.data);
}

}  // namespace gs::store
