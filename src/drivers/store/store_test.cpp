// What holds for every database: durability, turns, leadership, retention, versions.
#include "drivers/store/backend_test.hpp"
#include "drivers/store/schema.hpp"

namespace gs::store {
namespace {

INSTANTIATE_TEST_SUITE_P(Databases, StoreTest, testing::Values(Backend::Sqlite, Backend::Postgres),
                         backend_name);

Batch full_batch() {
  Batch batch;
  batch.turn = 3;
  batch.added = {full_job(10), sample_job(20), sample_job(30)};
  batch.added[2].state = RunState::Completed;
  batch.tenants = {full_tenant(5), full_tenant(40)};
  batch.tenants[1].active = false;
  batch.nodes = {full_node("b"), full_node("a")};
  batch.events = {sample_event(1, "job.started", 10, "tenant-1"),
                  sample_event(7, "node.up", 0, "")};
  batch.usage = {{"tenant-1", Instant{3'600'000}, 100, 1, 0.5}};
  batch.keys = {{"tenant-1", "k'1", 0xffff'ffff'ffff'fff0ULL, R"({"id":1})", Instant{4}}};
  return batch;
}

TEST_P(StoreTest, everything_survives) {
  const Batch batch = full_batch();
  {
    const auto store = lead();
    const Status status = store->commit(batch);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  const auto store = lead();
  const Result<Loaded> loaded = store->load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->turn, 3U);
  EXPECT_EQ(loaded->last_seq, 40);
  EXPECT_EQ(loaded->last_event, 7U);
  ASSERT_EQ(loaded->jobs.size(), 2U);  // the third has ended
  EXPECT_EQ(text_of(loaded->jobs[0]), text_of(batch.added[0]));
  EXPECT_EQ(text_of(loaded->jobs[1]), text_of(batch.added[1]));
  ASSERT_EQ(loaded->tenants.size(), 2U);
  EXPECT_EQ(text_of(loaded->tenants[0]), text_of(batch.tenants[0]));
  EXPECT_EQ(text_of(loaded->tenants[1]), text_of(batch.tenants[1]));
  ASSERT_EQ(loaded->nodes.size(), 2U);
  EXPECT_EQ(text_of(loaded->nodes[0]), text_of(batch.nodes[1]));
  EXPECT_EQ(text_of(**store->find_job(30)), text_of(batch.added[2]));
  EXPECT_FALSE(store->find_job(31)->has_value());
  const auto key = store->find_key("tenant-1", "k'1");
  ASSERT_TRUE(key.ok() && key->has_value());
  EXPECT_EQ((**key).body_hash, 0xffff'ffff'ffff'fff0ULL);
  EXPECT_EQ((**key).answer, R"({"id":1})");
  EXPECT_FALSE(store->find_key("tenant-2", "k'1")->has_value());

  const auto look = reader();
  EXPECT_TRUE(look->ping().ok());
  EXPECT_EQ(text_of(**look->job(10)), text_of(batch.added[0]));
  EXPECT_EQ(look->tenants()->size(), 1U);
  EXPECT_TRUE(look->tenant(40)->has_value());
  EXPECT_FALSE(look->tenant(41)->has_value());
  EXPECT_EQ(look->nodes()->size(), 2U);
  EXPECT_EQ(text_of(look->events({})->at(1)), text_of(batch.events[1]));
  EXPECT_EQ(look->usage({"", Instant{0}, Instant{9'000'000}})->at(0).gpu_ms, 100);
}

TEST_P(StoreTest, changes_reach_only_what_can_change) {
  const auto store = lead();
  ASSERT_TRUE(store->commit(full_batch()).ok());
  Batch batch;
  batch.turn = 4;
  JobRow changed = full_job(20);
  changed.exit_code.reset();
  changed.state = RunState::Failed;
  JobRow first = changed;  // a job that changes twice in a turn is what it was last
  first.priority = 1;
  batch.changed = {first, changed};
  batch.tenants = {full_tenant(5)};
  batch.tenants[0].spec.name = "other";
  batch.removed_nodes = {"a", "nobody"};
  batch.nodes = {full_node("b")};
  batch.nodes[0].cordoned = true;
  batch.usage = {{"tenant-1", Instant{3'600'000}, 11, 2, 0.25},
                 {"tenant-1", Instant{3'600'000}, 1, 0, 0},
                 {"tenant-1", Instant{7'200'000}, 5, 0, 0}};
  const Status status = store->commit(batch);
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto look = reader();
  JobRow expected = changed;
  const JobRow before = sample_job(20);
  expected.name = before.name;
  expected.gpu_count = before.gpu_count;
  expected.spec = before.spec;
  expected.labels = before.labels;
  expected.array_id = before.array_id;
  EXPECT_EQ(text_of(**look->job(20)), text_of(expected));
  EXPECT_EQ((**look->tenant(5)).spec.name, "other");
  ASSERT_EQ(look->nodes()->size(), 1U);
  EXPECT_TRUE(look->nodes()->at(0).cordoned);
  const auto usage = look->usage({"tenant-1", Instant{0}, Instant{7'200'000}});
  ASSERT_EQ(usage->size(), 1U);
  EXPECT_EQ(usage->at(0).gpu_ms, 112);
  EXPECT_EQ(usage->at(0).jobs_ended, 3);
  EXPECT_EQ(usage->at(0).cost, 0.75);
}

TEST_P(StoreTest, a_turn_is_applied_once) {
  auto store = lead();
  ASSERT_TRUE(store->commit(full_batch()).ok());
  ASSERT_TRUE(store->commit(full_batch()).ok());
  store.reset();
  store = lead();
  ASSERT_TRUE(store->commit(full_batch()).ok());
  const auto look = reader();
  EXPECT_EQ(look->usage({"", Instant{0}, Instant{9'000'000}})->at(0).gpu_ms, 100);
  Batch older;
  older.turn = 2;
  EXPECT_EQ(store->commit(older).error().code, ErrorCode::Conflict);
}

TEST_P(StoreTest, a_batch_that_fails_leaves_nothing) {
  const auto store = lead();
  ASSERT_TRUE(store->commit(full_batch()).ok());
  Batch batch;
  batch.turn = 4;
  batch.added = {sample_job(50), sample_job(10)};  // the second is there already
  EXPECT_FALSE(store->commit(batch).ok());
  EXPECT_FALSE(reader()->job(50)->has_value());
  batch.added.pop_back();
  EXPECT_TRUE(store->commit(batch).ok());
  EXPECT_TRUE(reader()->job(50)->has_value());
}

TEST_P(StoreTest, text_that_a_database_may_refuse_is_no_reason_to_stop) {
  const auto store = lead();
  Batch batch;
  batch.turn = 1;
  batch.added = {sample_job(1)};
  batch.added[0].message = std::string("a\0b \xff\xfe", 6);
  batch.added[0].labels = {{"k", "\xff"}};
  const Status status = store->commit(batch);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(reader()->job(1)->has_value());
}

TEST_P(StoreTest, one_leads_at_a_time) {
  auto first = lead();
  const auto second = open();
  EXPECT_TRUE(*first->try_lead());  // still
  EXPECT_FALSE(*second->try_lead());
  EXPECT_EQ(second->commit(full_batch()).error().code, ErrorCode::Conflict);
  EXPECT_EQ(second->renew().error().code, ErrorCode::Conflict);
  EXPECT_TRUE(first->renew().ok());
  EXPECT_TRUE(first->commit(full_batch()).ok());
  first.reset();
  Result<bool> leads = second->try_lead();
  for (int i = 0; i < 100 && !(leads.ok() && *leads); ++i) {  // the server hears of it a bit later
    ::usleep(20'000);
    leads = second->try_lead();
  }
  ASSERT_TRUE(*leads);
  EXPECT_EQ(second->load()->turn, 3U);
  EXPECT_TRUE(second->commit(full_batch()).ok());
}

TEST_P(StoreTest, who_was_overtaken_never_writes_again) {
  const auto store = lead();
  ASSERT_TRUE(store->commit(full_batch()).ok());
  ASSERT_TRUE(session()->run("UPDATE meta SET term = term + 1").ok());
  Batch batch;
  batch.turn = 4;
  batch.added = {sample_job(50)};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store->commit(batch).error().code, ErrorCode::Conflict);
  EXPECT_EQ(store->renew().error().code, ErrorCode::Conflict);
  EXPECT_EQ(store->forget({hours(1), hours(1), hours(1)}, Instant::never()).error().code,
            ErrorCode::Conflict);
  EXPECT_FALSE(reader()->job(50)->has_value());
}

TEST_P(StoreTest, forgets_what_is_old_in_pieces) {
  const auto store = lead();
  Batch batch;
  batch.turn = 1;
  for (int i = 1; i <= 2'500; ++i) {
    JobRow job = sample_job(i);
    job.labels = {{"n", std::to_string(i % 3)}, {"all", "x"}};
    job.state = i % 5 == 0 ? RunState::Running : RunState::Completed;
    job.completed = Instant{i % 5 == 0 ? 0 : i};
    batch.added.push_back(job);
    batch.events.push_back(sample_event(static_cast<std::uint64_t>(i), "t", i, "x"));
    batch.keys.push_back({"t", std::to_string(i), 1, "{}", Instant{i}});
  }
  ASSERT_TRUE(store->commit(batch).ok());
  EXPECT_EQ(*store->forget({}, Instant{1'000'000}), 0);  // for ever
  std::int64_t gone = 0;
  int calls = 0;
  const Retention retention{milliseconds(1'000), milliseconds(150'000), milliseconds(1'000)};
  while (true) {
    const Result<std::int64_t> piece = store->forget(retention, Instant{3'001});
    ASSERT_TRUE(piece.ok()) << piece.error().message;
    if (*piece == 0) break;
    EXPECT_LE(*piece, 1'000);
    gone += *piece;
    ++calls;
  }
  EXPECT_EQ(gone, 1'600 + 2'000);
  EXPECT_GE(calls, 4);
  const auto look = reader();
  EXPECT_FALSE(look->job(1'999)->has_value());
  EXPECT_TRUE(look->job(2'000)->has_value());  // runs
  EXPECT_TRUE(look->job(2'001)->has_value());
  JobQuery query;
  query.labels = {{"all", "x"}};
  EXPECT_EQ(look->jobs(query)->total, 900);
  EXPECT_EQ(look->events({})->size(), 100U);
  ASSERT_GT(*store->forget({{}, milliseconds(1), {}}, Instant{150'000}), 0);
  EXPECT_EQ(look->events({0, 0, "", "", 5'000})->size(), 1'500U);
  EXPECT_FALSE(store->find_key("t", "2000")->has_value());
  EXPECT_TRUE(store->find_key("t", "2001")->has_value());
  EXPECT_EQ(store->load()->last_event, 2'500U);
}

TEST_P(StoreTest, numbers_are_not_given_out_again_after_everything_was_forgotten) {
  auto store = lead();
  Batch batch;
  batch.turn = 1;
  batch.added = {sample_job(123)};
  batch.added[0].state = RunState::Failed;
  batch.added[0].completed = Instant{1};
  batch.events = {sample_event(55, "t", 0, "")};
  ASSERT_TRUE(store->commit(batch).ok());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(store->forget({milliseconds(1), milliseconds(1), {}}, Instant{1'000'000}).ok());
  EXPECT_FALSE(store->find_job(123)->has_value());
  store.reset();
  const auto loaded = lead()->load();
  EXPECT_EQ(loaded->last_seq, 123);
  EXPECT_EQ(loaded->last_event, 55U);
}

TEST_P(StoreTest, a_database_of_version_1_is_brought_up_to_date) {
  {
    const auto old = session();
    ASSERT_TRUE(migrate(*old, 1).ok());
    EXPECT_EQ(*select_number(*old, "SELECT max(version) FROM schema_version"), 1);
    ASSERT_TRUE(
        old->run("INSERT INTO events VALUES (1, 2, 'job.started', 3, 't', 'n', 'm', '')").ok());
  }
  const auto store = lead();
  EXPECT_EQ(*select_number(*session(), "SELECT max(version) FROM schema_version"),
            schema_version());
  EXPECT_EQ(reader()->events({0, 3, "", "", 10})->size(), 1U);
  Batch batch = full_batch();
  batch.events.clear();
  EXPECT_TRUE(store->commit(batch).ok());
}

TEST_P(StoreTest, a_database_of_a_newer_version_is_refused) {
  open().reset();
  ASSERT_TRUE(session()->run("INSERT INTO schema_version VALUES (99)").ok());
  const auto store = try_open();
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find("schema version 99"), std::string::npos)
      << store.error().message;
}

TEST_P(StoreTest, events_by_job_tenant_and_type) {
  const auto store = lead();
  Batch batch;
  batch.turn = 1;
  const std::string types[] = {"job.started", "job.ended", "node.up", "job", "tenant.new"};
  const std::string tenants[] = {"", "a", "b"};
  Rng rng(5);
  for (std::uint64_t i = 1; i <= 400; ++i)
    batch.events.push_back(sample_event(
        i, types[rng.below(5)], static_cast<std::int64_t>(rng.below(4)), tenants[rng.below(3)]));
  ASSERT_TRUE(store->commit(batch).ok());
  const auto look = reader();
  const std::string asked[] = {"", "*", "job.started", "job.*", "job*", "nothing", "no*", "x*"};
  for (int round = 0; round < 300; ++round) {
    EventQuery query;
    query.after = rng.below(450);
    query.job = static_cast<std::int64_t>(rng.below(4));
    query.tenant = tenants[rng.below(3)];
    query.type = asked[rng.below(8)];
    query.limit = static_cast<int>(rng.between(1, 30));
    std::vector<std::uint64_t> expected;
    for (const EventRow& event : batch.events) {
      if (event.id <= query.after || (query.job != 0 && event.job != query.job)) continue;
      if (!query.tenant.empty() && event.tenant != query.tenant) continue;
      if (query.type.ends_with('*')
              ? !event.type.starts_with(query.type.substr(0, query.type.size() - 1))
              : !query.type.empty() && event.type != query.type)
        continue;
      if (static_cast<int>(expected.size()) < query.limit) expected.push_back(event.id);
    }
    const auto events = look->events(query);
    ASSERT_TRUE(events.ok()) << events.error().message;
    std::vector<std::uint64_t> found;
    for (const EventRow& event : *events) found.push_back(event.id);
    ASSERT_EQ(found, expected) << query.type << " " << query.job << " " << query.tenant;
  }
}

}  // namespace
}  // namespace gs::store
