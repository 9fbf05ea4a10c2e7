// What is special about SQLite: files, disks that are full, damage.
#include "drivers/store/sqlite.hpp"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "drivers/store/backend_test.hpp"

namespace gs::store {
namespace {

SqliteSettings in(const TemporaryFolder& folder) {
  SqliteSettings settings;
  settings.path = folder / "jobs.db";
  return settings;
}

Batch jobs_of_turn(std::uint64_t turn, int count) {
  Batch batch;
  batch.turn = turn;
  for (int i = 0; i < count; ++i) {
    batch.added.push_back(sample_job(static_cast<std::int64_t>(turn) * 10'000 + i));
    batch.added.back().spec = std::string(500, 'x');
  }
  return batch;
}

TEST(Sqlite, nobody_else_may_read_its_files) {
  const TemporaryFolder folder;
  const auto store = std::move(*open_sqlite(in(folder)));
  ASSERT_TRUE(*store->try_lead());
  ASSERT_TRUE(store->commit(jobs_of_turn(1, 1)).ok());
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    struct stat info {};
    ASSERT_EQ(::stat((folder / "jobs.db" + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << suffix;
  }
}

TEST(Sqlite, a_commit_is_synced) {
  const TemporaryFolder folder;
  const auto session = std::move(*SqliteSession::open(in(folder), false));
  EXPECT_EQ(*select_number(*session, "PRAGMA synchronous"), 2);
  EXPECT_EQ(*select_number(*session, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
}

// How often the log has begun anew, as it says itself.
std::uint32_t log_number(const std::string& path) {
  unsigned char bytes[4] = {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::pread(file, bytes, sizeof bytes, 12), 4);
  ::close(file);
  return static_cast<std::uint32_t>(bytes[0]) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

TEST(Sqlite, its_log_stays_short_although_commits_go_on) {
  const TemporaryFolder folder;
  const auto store = std::move(*open_sqlite(in(folder)));
  ASSERT_TRUE(*store->try_lead());
  const std::string log = folder / "jobs.db-wal";
  std::uint64_t turn = 0;
  ASSERT_TRUE(store->commit(jobs_of_turn(++turn, 1)).ok());
  const std::uint32_t first = log_number(log);
  for (int i = 0; i < 24; ++i) {  // 24 MiB: more than it takes to be moved
    Batch large = jobs_of_turn(++turn, 1);
    large.added[0].spec.assign(1 << 20, 'x');
    ASSERT_TRUE(store->commit(large).ok());
  }
  for (int i = 0; i < 6'000 && log_number(log) == first; ++i) {
    ASSERT_TRUE(store->commit(jobs_of_turn(++turn, 1)).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(log_number(log), first);
}

TEST(Sqlite, a_full_disk_is_an_error_and_no_loss) {
  const TemporaryFolder folder;
  SqliteSettings settings = in(folder);
  settings.max_pages = 200;
  auto store = std::move(*open_sqlite(settings));
  ASSERT_TRUE(*store->try_lead());
  std::uint64_t turn = 1;
  while (store->commit(jobs_of_turn(turn, 50)).ok()) ++turn;
  ASSERT_GT(turn, 3U);
  const Status full = store->commit(jobs_of_turn(turn, 50));
  EXPECT_EQ(full.error().code, ErrorCode::Unavailable);
  EXPECT_NE(full.error().message.find("full"), std::string::npos) << full.error().message;
  const auto reader = std::move(*read_sqlite(settings, 1));
  EXPECT_EQ(reader->jobs({})->total, static_cast<std::int64_t>(turn - 1) * 50);
  store.reset();
  settings.max_pages = 0;  // room again: the same turn goes through
  store = std::move(*open_sqlite(settings));
  ASSERT_TRUE(*store->try_lead());
  EXPECT_EQ(store->load()->turn, turn - 1);
  ASSERT_TRUE(store->commit(jobs_of_turn(turn, 50)).ok());
  EXPECT_EQ(reader->jobs({})->total, static_cast<std::int64_t>(turn) * 50);
}

TEST(Sqlite, what_is_no_database_is_refused_by_name) {
  const TemporaryFolder folder;
  std::ofstream(folder / "jobs.db") << std::string(5'000, 'z');
  const auto store = open_sqlite(in(folder));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find(folder / "jobs.db"), std::string::npos);
  EXPECT_NE(store.error().message.find("damaged"), std::string::npos) << store.error().message;
  SqliteSettings nowhere;
  nowhere.path = folder / "no/such/folder/jobs.db";
  EXPECT_NE(open_sqlite(nowhere).error().message.find("No such file"), std::string::npos);
  EXPECT_FALSE(read_sqlite(nowhere, 1).ok());
}

TEST(Sqlite, a_damaged_page_is_an_error) {
  const TemporaryFolder folder;
  {
    const auto store = std::move(*open_sqlite(in(folder)));
    ASSERT_TRUE(*store->try_lead());
    ASSERT_TRUE(store->commit(jobs_of_turn(1, 2'000)).ok());
  }
  {
    std::fstream file(folder / "jobs.db", std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 1; page < 400; ++page) {
      file.seekp(page * 4096);
      file << std::string(4096, '\x7f');
    }
  }
  const auto store = open_sqlite(in(folder));
  ASSERT_FALSE(store.ok() && (*store)->try_lead().ok() && (*store)->load().ok());
}

TEST(Sqlite, readers_see_every_commit_before_their_call) {
  const TemporaryFolder folder;
  const auto store = std::move(*open_sqlite(in(folder)));
  ASSERT_TRUE(*store->try_lead());
  const auto reader = std::move(*read_sqlite(in(folder), 3));
  std::atomic<std::int64_t> committed = 0;
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const std::int64_t before = committed;
        const Result<JobPage> page = reader->jobs({});
        if (!page.ok() || page->total < before * 20) ++wrong;
      }
    });
  for (std::uint64_t turn = 1; turn <= 30; ++turn) {
    EXPECT_TRUE(store->commit(jobs_of_turn(turn, 20)).ok());
    committed = static_cast<std::int64_t>(turn);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gs::store
