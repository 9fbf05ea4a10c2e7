// Lists of jobs: every filter and order against a plain model, cursors, and that no query looks at
// everything.
#include <algorithm>

#include "drivers/store/backend_test.hpp"
#include "drivers/store/cursor.hpp"
#include "drivers/store/job_list.hpp"
#include "drivers/store/sqlite.hpp"

namespace gs::store {
namespace {

class ListTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Databases, ListTest, testing::Values(Backend::Sqlite, Backend::Postgres),
                         backend_name);

const std::string kNames[] = {"a", "ab", "abc", "b", "B", "\xc3\xa9t\xc3\xa9", "a_", "a%"};
constexpr RunState kStates[] = {RunState::Pending,   RunState::Scheduled, RunState::Running,
                                RunState::Completed, RunState::Failed,    RunState::Cancelled,
                                RunState::Preempted};

JobRow random_job(std::int64_t seq, Rng& rng) {
  JobRow job = sample_job(seq);
  job.tenant = "tenant-" + std::to_string(rng.below(3));
  job.name = kNames[rng.below(8)];
  job.state = kStates[rng.below(7)];
  job.priority = static_cast<int>(rng.between(-2, 2));
  if (rng.chance(0.4)) set_label(job.labels, "team", rng.chance(0.5) ? "x" : "y");
  if (rng.chance(0.4)) set_label(job.labels, "env", rng.chance(0.5) ? "x" : "prod");
  if (rng.chance(0.3)) job.array_id = rng.chance(0.5) ? "job-1" : "job-2";
  return job;
}

JobQuery random_query(Rng& rng) {
  JobQuery query;
  if (rng.chance(0.4)) query.tenant = "tenant-" + std::to_string(rng.below(4));
  if (rng.chance(0.4))
    for (const RunState state : kStates)
      if (rng.chance(0.3)) query.states.push_back(state);
  if (rng.chance(0.3)) query.name = kNames[rng.below(8)] + (rng.chance(0.5) ? "*" : "");
  if (rng.chance(0.05)) query.name = "*";
  if (rng.chance(0.3)) set_label(query.labels, "team", rng.chance(0.5) ? "x" : "y");
  if (rng.chance(0.2)) set_label(query.labels, "env", "prod");
  if (rng.chance(0.2)) query.array_id = "job-2";
  query.sort = static_cast<JobSort>(rng.below(3));
  query.descending = rng.chance(0.5);
  query.limit = static_cast<int>(rng.between(1, 70));
  return query;
}

bool matches(const JobRow& job, const JobQuery& query) {
  if (!query.tenant.empty() && job.tenant != query.tenant) return false;
  if (!query.states.empty() &&
      std::find(query.states.begin(), query.states.end(), job.state) == query.states.end())
    return false;
  if (query.name.ends_with('*')) {
    if (!job.name.starts_with(query.name.substr(0, query.name.size() - 1))) return false;
  } else if (!query.name.empty() && job.name != query.name) {
    return false;
  }
  for (const auto& [key, value] : query.labels) {
    const std::string* found = find_label(job.labels, key);
    if (found == nullptr || *found != value) return false;
  }
  return query.array_id.empty() || job.array_id == query.array_id;
}

std::vector<std::int64_t> expected(std::vector<JobRow> jobs, const JobQuery& query) {
  std::erase_if(jobs, [&](const JobRow& job) { return !matches(job, query); });
  std::sort(jobs.begin(), jobs.end(), [&](const JobRow& a, const JobRow& b) {
    const JobRow& first = query.descending ? b : a;
    const JobRow& second = query.descending ? a : b;
    if (query.sort == JobSort::Priority && a.priority != b.priority)
      return first.priority < second.priority;
    if (query.sort == JobSort::Name && a.name != b.name) return first.name < second.name;
    return first.seq < second.seq;
  });
  std::vector<std::int64_t> numbers;
  for (const JobRow& job : jobs) numbers.push_back(job.seq);
  return numbers;
}

void append(std::vector<std::int64_t>& to, const JobPage& page) {
  for (const JobRow& job : page.jobs) to.push_back(job.seq);
}

TEST_P(ListTest, every_filter_and_order_is_what_a_plain_search_finds) {
  const auto store = lead();
  Rng rng(11);
  Batch batch;
  batch.turn = 1;
  for (int i = 1; i <= 700; ++i) batch.added.push_back(random_job(i * 3, rng));
  ASSERT_TRUE(store->commit(batch).ok());
  const auto look = reader();
  for (int round = 0; round < 250; ++round) {
    JobQuery query = random_query(rng);
    const std::vector<std::int64_t> wanted = expected(batch.added, query);
    std::vector<std::int64_t> found;
    do {
      const Result<JobPage> page = look->jobs(query);
      ASSERT_TRUE(page.ok()) << page.error().message;
      ASSERT_LE(static_cast<int>(page->jobs.size()), query.limit);
      ASSERT_EQ(page->total, static_cast<std::int64_t>(wanted.size())) << "round " << round;
      ASSERT_TRUE(page->total_is_exact);
      append(found, *page);
      query.cursor = page->next_cursor;
    } while (!query.cursor.empty());
    ASSERT_EQ(found, wanted) << "round " << round;
    query.offset = static_cast<std::int64_t>(rng.below(40));
    const Result<JobPage> page = look->jobs(query);
    std::vector<std::int64_t> part, wanted_part;
    append(part, *page);
    for (std::size_t i = static_cast<std::size_t>(query.offset);
         i < wanted.size() && static_cast<int>(wanted_part.size()) < query.limit; ++i)
      wanted_part.push_back(wanted[i]);
    ASSERT_EQ(part, wanted_part) << "round " << round;
  }
}

// More rows than are sorted gladly: the other ways to a page.
TEST_P(ListTest, long_lists_are_the_same_whichever_way_is_taken) {
  const auto store = lead();
  Rng rng(12);
  std::vector<JobRow> all;
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    Batch batch;
    batch.turn = turn;
    for (int i = 0; i < 5'000; ++i) {
      JobRow job = random_job(static_cast<std::int64_t>(all.size()) + 1, rng);
      job.tenant = job.seq < 2'500 ? "tenant-rare" : "tenant-0";  // far from where walks begin
      job.labels = {{"team", job.seq < 2'600 ? "x" : "y"}};
      all.push_back(job);
      batch.added.push_back(job);
    }
    ASSERT_TRUE(store->commit(batch).ok());
  }
  const auto look = reader();
  for (const JobSort sort : {JobSort::Submitted, JobSort::Priority, JobSort::Name})
    for (const bool descending : {true, false})
      for (int filter = 0; filter < 5; ++filter) {
        JobQuery query;
        query.sort = sort;
        query.descending = descending;
        query.limit = 700;
        if (filter == 1) query.tenant = "tenant-rare";
        if (filter == 2) query.states = {RunState::Failed, RunState::Running};
        if (filter == 3) query.name = "a*";
        if (filter == 4) query.labels = {{"team", "x"}};
        const auto wanted = expected(all, query);
        std::vector<std::int64_t> found;
        for (int pages = 0; pages < 3; ++pages) {
          const Result<JobPage> page = look->jobs(query);
          ASSERT_TRUE(page.ok()) << page.error().message;
          append(found, *page);
          EXPECT_EQ(page->total,
                    std::min<std::int64_t>(static_cast<std::int64_t>(wanted.size()), kCountLimit));
          EXPECT_EQ(page->total_is_exact, wanted.size() <= 10'000);
          query.cursor = page->next_cursor;
          if (query.cursor.empty()) break;
        }
        ASSERT_TRUE(std::equal(found.begin(), found.end(), wanted.begin())) << filter;
        ASSERT_EQ(found.size(), std::min<std::size_t>(wanted.size(), 2'100)) << filter;
      }
}

TEST_P(ListTest, cursors_hold_while_rows_are_added) {
  const auto store = lead();
  Rng rng(13);
  Batch batch;
  batch.turn = 1;
  for (int i = 1; i <= 200; ++i) batch.added.push_back(random_job(i * 10, rng));
  const std::vector<JobRow> before = batch.added;
  ASSERT_TRUE(store->commit(batch).ok());
  const auto look = reader();
  std::int64_t next = 1;
  for (const JobSort sort : {JobSort::Submitted, JobSort::Priority, JobSort::Name}) {
    JobQuery query;
    query.sort = sort;
    query.limit = 17;
    std::vector<std::int64_t> found;
    do {
      const Result<JobPage> page = look->jobs(query);
      ASSERT_TRUE(page.ok()) << page.error().message;
      append(found, *page);
      query.cursor = page->next_cursor;
      Batch more;  // before, between and behind
      more.turn = ++batch.turn;
      for (int i = 0; i < 5; ++i, ++next)
        more.added.push_back(random_job(next * 10 + 1 + next % 7, rng));
      ASSERT_TRUE(store->commit(more).ok());
    } while (!query.cursor.empty());
    const auto wanted = expected(before, query);
    std::erase_if(found, [&](std::int64_t seq) {
      return std::find(wanted.begin(), wanted.end(), seq) == wanted.end();
    });
    EXPECT_EQ(found, wanted);  // none skipped, none twice
  }
}

TEST_P(ListTest, a_cursor_that_we_did_not_give_is_refused) {
  const auto store = lead();
  const auto look = reader();
  JobQuery query;
  const std::string good = encode({JobSort::Priority, true, 5, "3"});
  for (const std::string& bad :
       {std::string("x"), std::string("not a cursor"), std::string("AAAAAAAAAAAAAAAA"), good + "A",
        good, encode({JobSort::Submitted, false, 5, ""})}) {
    query.cursor = bad;
    const Result<JobPage> page = look->jobs(query);
    ASSERT_FALSE(page.ok()) << bad;
    EXPECT_EQ(page.error().code, ErrorCode::InvalidArgument);
  }
  query.sort = JobSort::Priority;
  query.cursor = encode({JobSort::Priority, true, 5, "3x"});
  EXPECT_EQ(look->jobs(query).error().code, ErrorCode::InvalidArgument);
  query.cursor = good;
  EXPECT_TRUE(look->jobs(query).ok());
}

TEST(Cursor, comes_back_as_it_went) {
  for (const char* key : {"", "a", "ab", "abc:d", "\xc3\xa9\xff"}) {
    const Cursor cursor{JobSort::Name, false, 1'765'705'491'822'858'545, key};
    const Result<Cursor> back = decode_cursor(encode(cursor), JobSort::Name, false);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->seq, cursor.seq);
    EXPECT_EQ(back->key, key);
  }
}

// The plan of every statement that a list of any filter and order takes.
TEST(SqlitePlans, no_filter_looks_at_every_job) {
  const TemporaryFolder folder;
  SqliteSettings settings;
  settings.path = folder / "jobs.db";
  const auto store = std::move(*open_sqlite(settings));
  ASSERT_TRUE(*store->try_lead());
  const auto session = std::move(*SqliteSession::open(settings, true));
  Rng rng(14);
  Batch batch;
  batch.turn = 1;
  for (int i = 1; i <= 3'000; ++i) batch.added.push_back(random_job(i, rng));
  ASSERT_TRUE(store->commit(batch).ok());
  int looked_at = 0;
  for (int round = 0; round < 400; ++round) {
    JobQuery query = random_query(rng);
    if (rng.chance(0.5)) query.cursor = list_jobs(*session, query)->next_cursor;
    const auto statements = list_statements(*session, query);
    ASSERT_TRUE(statements.ok()) << statements.error().message;
    for (const std::string& sql : *statements) {
      const bool in_order = sql.find("ORDER BY") != std::string::npos;
      const bool has_filter = !query.tenant.empty() || !query.states.empty() ||
                              (!query.name.empty() && query.name != "*") || !query.labels.empty() ||
                              !query.array_id.empty();
      (void)session->query("EXPLAIN QUERY PLAN " + sql, {}, [&](const Row& row) {
        const std::string step(row.text(3));
        ++looked_at;
        if (!step.starts_with("SCAN") || step == "SCAN page" || step == "SCAN found") return;
        // What goes along an index from its end may do so only to find the order, or to count
        // where nothing is filtered; it stops at a limit.
        EXPECT_TRUE(step.starts_with("SCAN j") && (in_order || !has_filter) &&
                    sql.find(" LIMIT ") != std::string::npos)
            << step << "\n"
            << sql;
      });
    }
  }
  EXPECT_GT(looked_at, 1'000);
}

}  // namespace
}  // namespace gs::store
