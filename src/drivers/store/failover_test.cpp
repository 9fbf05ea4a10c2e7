// PostgreSQL when things break: the server is killed in the middle of commits, leaders are killed
// or sleep, and come back.
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include <sys/wait.h>

#include "drivers/store/backend_test.hpp"
#include "drivers/store/postgres.hpp"

namespace gs::store {
namespace {

class FailoverTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Databases, FailoverTest, testing::Values(Backend::Postgres), backend_name);

Batch turn_of(std::uint64_t turn) {
  Batch batch;
  batch.turn = turn;
  for (int i = 0; i < 10; ++i)
    batch.added.push_back(sample_job(static_cast<std::int64_t>(turn) * 100 + i));
  batch.usage = {{"tenant-1", Instant{0}, 1, 0, 0}};
  return batch;
}

// Until it is not Unavailable any more.
Status insist(const std::function<Status()>& call) {
  Status status = call();
  for (int i = 0; i < 3'000 && !status && status.error().code == ErrorCode::Unavailable; ++i) {
    ::usleep(10'000);
    status = call();
  }
  return status;
}

TEST_P(FailoverTest, a_server_that_is_killed_loses_and_repeats_nothing) {
  const auto store = lead();
  const auto look = reader();
  std::atomic<std::uint64_t> turn = 0;
  std::atomic<bool> stop = false;
  std::thread killer([&] {
    for (int i = 0; i < 2 && !stop; ++i) {
      for (const std::uint64_t before = turn; turn < before + 25 && !stop;) ::usleep(1'000);
      shared_server()->kill();  // in the middle of a commit, nearly always
      EXPECT_TRUE(shared_server()->start());
    }
    stop = true;
  });
  while (!stop) {
    const Batch batch = turn_of(++turn);
    const Status status = insist([&] { return store->commit(batch); });
    EXPECT_TRUE(status.ok()) << status.error().message;
    if (!status) break;
  }
  stop = true;
  killer.join();
  ASSERT_GT(turn, 50U);
  ASSERT_TRUE(insist([&] { return look->ping(); }).ok());
  const auto usage = look->usage({"", Instant{0}, Instant{1}});
  ASSERT_TRUE(usage.ok()) << usage.error().message;
  EXPECT_EQ(usage->at(0).gpu_ms, static_cast<std::int64_t>(turn.load()));  // each turn added one
  EXPECT_EQ(*select_number(*session(), "SELECT count(*) FROM jobs"),
            static_cast<std::int64_t>(turn.load()) * 10);
  EXPECT_EQ(store->load()->turn, turn.load());
}

TEST_P(FailoverTest, a_database_out_of_reach_is_said_to_be_unavailable) {
  const auto store = lead();
  shared_server()->kill();
  EXPECT_EQ(store->commit(turn_of(1)).error().code, ErrorCode::Unavailable);
  EXPECT_EQ(store->commit(turn_of(1)).error().code, ErrorCode::Unavailable);
  EXPECT_EQ(open_postgres(postgres()).error().code, ErrorCode::Unavailable);
  ASSERT_TRUE(shared_server()->start());
  EXPECT_TRUE(insist([&] { return store->commit(turn_of(1)); }).ok());
}

// A leader in a process of its own, that commits turns without pause until it is stopped.
class OtherLeader {
 public:
  explicit OtherLeader(const PostgresSettings& settings) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    auto store = open_postgres(settings);
    if (!store || !*(*store)->try_lead()) ::_exit(3);
    std::uint64_t turn = (*store)->load()->turn;
    while (true) {
      const Status status = (*store)->commit(turn_of(++turn));
      if (!status) ::_exit(status.error().code == ErrorCode::Conflict ? 42 : 4);
      if (!(*store)->renew()) ::_exit(5);
      ::usleep(2'000);
    }
  }
  ~OtherLeader() {
    if (pid_ <= 1) return;
    signal(SIGKILL);
    (void)exit_code();
  }
  // Only ever to that one process: below 1 the kernel would take it for many.
  void signal(int number) const {
    if (pid_ > 1) ::kill(pid_, number);
  }
  int exit_code() {
    int status = 0;
    if (pid_ > 1) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

// Until the other one has committed something.
void wait_for_turns(Session& session) {
  for (int i = 0; i < 500; ++i) {
    if (*select_number(session, "SELECT turn FROM meta") > 5) return;
    ::usleep(20'000);
  }
  FAIL() << "the other leader did not begin";
}

double seconds_until_lead(Store& store) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 600; ++i) {
    const Result<bool> leads = store.try_lead();
    if (leads.ok() && *leads) break;
    ::usleep(50'000);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_P(FailoverTest, a_killed_leader_is_followed) {
  const auto store = open();
  const auto watch = session();
  OtherLeader other(postgres());
  wait_for_turns(*watch);
  EXPECT_FALSE(*store->try_lead());
  other.signal(SIGKILL);
  RecordProperty("seconds", std::to_string(seconds_until_lead(*store)));
  ASSERT_TRUE(store->renew().ok());
  const std::uint64_t turn = store->load()->turn;
  EXPECT_TRUE(store->commit(turn_of(turn + 1)).ok());
}

TEST_P(FailoverTest, a_leader_that_sleeps_is_overtaken_and_never_writes_again) {
  const auto store = open();
  const auto watch = session();
  OtherLeader other(postgres());
  wait_for_turns(*watch);
  other.signal(SIGSTOP);
  const double seconds = seconds_until_lead(*store);
  RecordProperty("seconds", std::to_string(seconds));
  ASSERT_TRUE(store->renew().ok());
  const std::uint64_t turn = store->load()->turn;
  ASSERT_TRUE(store->commit(turn_of(turn + 1)).ok());
  other.signal(SIGCONT);
  const int code = other.exit_code();  // it lost its connection, or was told of the conflict
  EXPECT_TRUE(code == 42 || code == 4 || code == 5) << code;
  EXPECT_EQ(store->load()->turn, turn + 1);
}

TEST_P(FailoverTest, an_overtaken_leader_is_told_so_for_ever) {
  const auto first = lead();
  ASSERT_TRUE(first->commit(turn_of(1)).ok());
  const auto second = open();
  EXPECT_FALSE(*second->try_lead());
  ASSERT_TRUE(session()->run("UPDATE meta SET heartbeat = heartbeat - interval '10 s'").ok());
  ASSERT_TRUE(*second->try_lead());
  int unavailable = 0;
  Status status = first->commit(turn_of(2));
  for (; !status && status.error().code == ErrorCode::Unavailable; ++unavailable) {
    ::usleep(20'000);
    status = first->commit(turn_of(2));
  }
  EXPECT_LT(unavailable, 100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first->commit(turn_of(2)).error().code, ErrorCode::Conflict);
    EXPECT_EQ(first->renew().error().code, ErrorCode::Conflict);
    EXPECT_EQ(first->try_lead().error().code, ErrorCode::Conflict);
  }
  EXPECT_TRUE(second->commit(turn_of(2)).ok());
}

TEST_P(FailoverTest, a_leader_whose_connection_breaks_goes_on_in_its_term) {
  const auto store = lead();
  ASSERT_TRUE(store->commit(turn_of(1)).ok());
  const auto other = session();
  const std::int64_t term = *select_number(*other, "SELECT term FROM meta");
  ASSERT_TRUE(other->run("SELECT pg_terminate_backend(leader::int, 1000) FROM meta").ok());
  EXPECT_TRUE(insist([&] { return store->commit(turn_of(2)); }).ok());
  EXPECT_EQ(*select_number(*other, "SELECT term FROM meta"), term);
  EXPECT_FALSE(*open()->try_lead());  // it holds the lock again
}

TEST_P(FailoverTest, readers_find_the_database_again) {
  const auto store = lead();
  ASSERT_TRUE(store->commit(turn_of(1)).ok());
  const auto look = reader(1);
  ASSERT_TRUE(look->ping().ok());
  ASSERT_TRUE(session()
                  ->run("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE pid <> "
                        "pg_backend_pid() AND datname = current_database()")
                  .ok());
  EXPECT_TRUE(look->job(100)->has_value());
}

// Tables, columns, types and indexes of a database, as lines.
std::string shape_of(Session& session) {
  std::string shape;
  const auto add = [&](const Row& row) { shape.append(row.text(0)).append("\n"); };
  EXPECT_TRUE(session
                  .query("SELECT table_name || '.' || column_name || ' ' || udt_name || ' ' || "
                         "is_nullable || ' ' || coalesce(collation_name, '') || ' ' || "
                         "coalesce(generation_expression, '') FROM information_schema.columns "
                         "WHERE table_schema = 'public' ORDER BY 1",
                         {}, add)
                  .ok());
  EXPECT_TRUE(
      session
          .query("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1", {}, add)
          .ok());
  EXPECT_TRUE(
      session.query("SELECT prosrc FROM pg_proc WHERE proname = 'advance_turn' ORDER BY 1", {}, add)
          .ok());
  return shape;
}

TEST_P(FailoverTest, the_documented_schema_is_the_one_in_use) {
  std::ifstream file("api/schema.sql");
  const std::string documented((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(documented.empty()) << "tests run in the root of the repository";
  const auto other = session();
  const Status applied = other->script(documented);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  const std::string wanted = shape_of(*other);
  ASSERT_EQ(shared_server()->create_database(database_ + "b"), 0);
  PostgresSettings settings = postgres();
  settings.database += "b";
  ASSERT_TRUE(open_postgres(settings).ok());
  PostgresSession made(settings);
  EXPECT_EQ(shape_of(made), wanted);
  EXPECT_TRUE(try_open().ok());  // and it is taken for a database of ours
}

TEST_P(FailoverTest, people_find_their_way_with_psql) {
  const auto store = lead();
  Batch batch;
  batch.turn = 1;
  batch.added = {full_job(10), sample_job(20)};
  batch.tenants = {full_tenant(5)};
  ASSERT_TRUE(store->commit(batch).ok());
  EXPECT_EQ(shared_server()->psql(
                database_,
                "SELECT id, name, state, priority, gpu_count FROM jobs ORDER BY priority DESC"),
            "job-20|job|pending|0|0\njob-10|n\"a'm\\e \xc3\xa9|running|-5|8\n");
  EXPECT_EQ(
      shared_server()->psql(database_, "SELECT id, name, max_gp_us, current_gp_us FROM tenants"),
      "tenant-5|team|16|2.5\n");
}

}  // namespace
}  // namespace gs::store
