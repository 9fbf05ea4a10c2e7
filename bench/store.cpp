// What durability costs: rows a second in commits of a given size, with their syncs and without,
// beside a bare table of one column; lists and a start with a million jobs.
#include "service/store.hpp"

#include <ctime>
#include <memory>
#include <string>

#include <sqlite3.h>

#include "base/rng.hpp"
#include "drivers/store/open.hpp"
#include "drivers/store/postgres.hpp"
#include "drivers/store/server_test.hpp"
#include "report.hpp"

namespace {

using namespace gs;
using bench::Report;
using bench::Samples;
using bench::Stopwatch;
using store::PostgresServer;
using store::TemporaryFolder;

constexpr std::int64_t kFirstSeq = 1'765'705'491'822'858'545;
constexpr int kTenants = 20;
constexpr int kManyJobs = 1'000'000;

JobRow make_job(std::int64_t i, Rng& rng) {
  JobRow job;
  job.seq = kFirstSeq + i * 1000;
  job.tenant = tenant_id(kFirstSeq + static_cast<std::int64_t>(rng.below(kTenants)));
  job.name = fmt::format("train-{}", i);
  job.gpu_count = 8;
  job.spec =
      fmt::format(R"({{"tenant_id":"{}","name":"{}","command":["python","train.py"],"env":"{}"}})",
                  job.tenant, job.name, std::string(400, 'x'));
  job.submitted = Instant{1'765'705'491'822 + i};
  job.priority = static_cast<int>(rng.between(1, 10)) * 100;
  return job;
}

Batch make_batch(std::uint64_t turn, std::int64_t& next, int rows, Rng& rng) {
  Batch batch;
  batch.turn = turn;
  for (int i = 0; i < rows; ++i) batch.added.push_back(make_job(next++, rng));
  return batch;
}

// The time that this thread worked: on a machine that others use too, what our own work costs.
class CpuWatch {
 public:
  double us() const { return now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
  double start_ = now();
};

// Rows a second; 0 where a commit failed.
template <typename Watch = Stopwatch>
double inserts(Store& store, std::uint64_t& turn, std::int64_t& next, int rows, double for_us) {
  Rng rng(static_cast<std::uint64_t>(rows));
  double spent = 0;
  std::int64_t done = 0;
  while (spent < for_us) {
    const Batch batch = make_batch(++turn, next, rows, rng);
    const Watch watch;
    if (const Status status = store.commit(batch); !status) {
      fmt::print("commit: {}\n", status.error().message);
      return 0;
    }
    spent += watch.us();
    done += rows;
  }
  return static_cast<double>(done) / spent * 1e6;
}

template <typename Watch = Stopwatch>
double bare_sqlite(const std::string& path, int rows, double for_us) {
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db,
               "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
               "CREATE TABLE IF NOT EXISTS t (a INTEGER)",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?)", -1, &insert, nullptr);
  const Watch watch;
  std::int64_t done = 0;
  while (watch.us() < for_us) {
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    for (int i = 0; i < rows; ++i) {
      sqlite3_bind_int64(insert, 1, ++done);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  }
  const double rate = static_cast<double>(done) / watch.us() * 1e6;
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return rate;
}

// Everything that is live ends.
bool end_all(Store& store, std::uint64_t& turn) {
  Result<Loaded> loaded = store.load();
  Batch batch;
  for (std::size_t i = 0; loaded && i < loaded->jobs.size(); ++i) {
    batch.changed.push_back(std::move(loaded->jobs[i]));
    batch.changed.back().state = RunState::Completed;
    batch.changed.back().completed = batch.changed.back().submitted + seconds(60);
    if (batch.changed.size() < 5'000 && i + 1 < loaded->jobs.size()) continue;
    batch.turn = ++turn;
    if (!store.commit(batch)) return false;
    batch.changed.clear();
  }
  return loaded.ok();
}

// A million jobs: 2,000 of them live, in commits of 5,000.
bool fill(Store& store, std::uint64_t& turn, std::int64_t& next, int count) {
  Rng rng(7);
  for (int done = 0; done < count;) {
    Batch batch;
    batch.turn = ++turn;
    for (int i = 0; i < 5'000; ++i, ++done) {
      JobRow job = make_job(next++, rng);
      const auto fate = rng.below(1'000);
      job.state = fate < 2 ? RunState::Pending : fate < 50 ? RunState::Failed : RunState::Completed;
      if (is_final(job.state)) job.completed = job.submitted + seconds(60);
      if (rng.below(100) == 0) job.labels = {{"team", fmt::format("t{}", rng.below(10))}};
      if (rng.below(100) == 0) job.array_id = fmt::format("job-{}", done / 1'000 + 1);
      batch.added.push_back(std::move(job));
    }
    if (const Status status = store.commit(batch); !status) {
      fmt::print("fill: {}\n", status.error().message);
      return false;
    }
  }
  return true;
}

void lists(Report& report, Reader& reader, const std::string& where) {
  std::vector<std::pair<std::string, JobQuery>> filters;
  filters.emplace_back("everything", JobQuery{});
  const auto add = [&](const std::string& name) -> JobQuery& {
    return filters.emplace_back(name, JobQuery{}).second;
  };
  add("one tenant").tenant = tenant_id(kFirstSeq + 3);
  add("pending").states = {RunState::Pending};
  add("failed").states = {RunState::Failed};
  add("one name").name = "train-500000";
  add("names from train-77").name = "train-77*";
  add("one label").labels = {{"team", "t3"}};
  add("one array").array_id = "job-500";
  JobQuery& both = add("failed of one tenant");
  both.tenant = tenant_id(kFirstSeq + 3);
  both.states = {RunState::Failed};
  const std::pair<const char*, JobSort> sorts[] = {
      {"submitted", JobSort::Submitted}, {"priority", JobSort::Priority}, {"name", JobSort::Name}};
  for (auto& [name, query] : filters)
    for (const auto& [sort_name, sort] : sorts)
      for (const bool descending : {true, false}) {
        query.sort = sort;
        query.descending = descending;
        Samples samples;
        for (int i = 0; i < 7; ++i) {
          const Stopwatch watch;
          const Result<JobPage> page = reader.jobs(query);
          if (!page) fmt::print("{}: {}\n", name, page.error().message);
          samples.us.push_back(watch.us());
        }
        report.add({fmt::format("{}: list {} by {} {}, p50", where, name, sort_name,
                                descending ? "down" : "up"),
                    "ms", samples.at(0.5) / 1000, 50, "aim"});
      }
}

void measure(Report& report, Store& store, Reader& reader, const std::string& where,
             const std::vector<std::pair<int, double>>& anchors, const std::string& anchor_name) {
  std::uint64_t turn = 0;
  std::int64_t next = 1;
  for (const auto& [rows, anchor] : anchors)
    report.add({fmt::format("{}: jobs inserted, commits of {}", where, rows), "1/s",
                inserts(store, turn, next, rows, 2e6), anchor, anchor_name, false});
  if (!end_all(store, turn) || !fill(store, turn, next, kManyJobs)) return;
  const Stopwatch watch;
  const Result<Loaded> loaded = store.load();
  report.add({fmt::format("{}: load with {} live of {} jobs", where,
                          loaded ? loaded->jobs.size() : 0, next - 1),
              "ms", watch.us() / 1000, 1000, "aim"});
  lists(report, reader, where);
  report.add({fmt::format("{}: jobs inserted at {} jobs, commits of 64", where, next - 1), "1/s",
              inserts(store, turn, next, 64, 3e6), 0, ""});
}

void sqlite(Report& report) {
  const TemporaryFolder folder;
  SqliteSettings settings;
  settings.path = folder / "jobs.db";
  std::unique_ptr<Store> store = std::move(*open_sqlite(settings));
  std::unique_ptr<Reader> reader = std::move(*read_sqlite(settings, 1));
  if (!store->try_lead() || !*store->try_lead()) return;
  std::vector<std::pair<int, double>> anchors;
  for (const int rows : {1, 64, 1000})
    anchors.emplace_back(rows, bare_sqlite(folder / "bare.db", rows, 2e6));
  measure(report, *store, *reader, "SQLite", anchors, "bare SQLite, one column");
}

// In memory-backed files a sync costs nothing: what is left is our own work.
void sqlite_without_disk(Report& report) {
  const TemporaryFolder folder("/dev/shm");
  if (folder.path().empty()) return;
  SqliteSettings settings;
  settings.path = folder / "jobs.db";
  std::unique_ptr<Store> store = std::move(*open_sqlite(settings));
  if (!store->try_lead() || !*store->try_lead()) return;
  std::uint64_t turn = 0;
  std::int64_t next = 1;
  for (const int rows : {1, 64, 1000})
    report.add({fmt::format("SQLite, no disk: jobs inserted a CPU second, commits of {}", rows),
                "1/s", inserts<CpuWatch>(*store, turn, next, rows, 2e6),
                bare_sqlite<CpuWatch>(folder / "bare.db", rows, 1e6), "bare SQLite, one column",
                false});
}

// A bare table of one column, a multi-row INSERT a commit.
double bare_postgres(store::PostgresSession& session, int rows, double for_us) {
  (void)session.script("CREATE TABLE IF NOT EXISTS bare (a BIGINT)");
  const Stopwatch watch;
  std::int64_t done = 0;
  while (watch.us() < for_us) {
    std::string sql = "INSERT INTO bare VALUES ";
    for (int i = 0; i < rows; ++i) sql += fmt::format("{}({})", i == 0 ? "" : ",", ++done);
    (void)session.script(sql);
  }
  return static_cast<double>(done) / watch.us() * 1e6;
}

void postgres(Report& report) {
  if (!PostgresServer::is_installed()) {
    fmt::print("PostgreSQL's server is not installed: no figures for it\n");
    return;
  }
  const PostgresServer server;
  if (!server.ok()) return;
  std::unique_ptr<Store> store = std::move(*open_postgres(server.settings()));
  std::unique_ptr<Reader> reader = std::move(*read_postgres(server.settings(), 1));
  if (!store->try_lead() || !*store->try_lead()) return;
  store::PostgresSession session(server.settings());
  std::vector<std::pair<int, double>> anchors;
  for (const int rows : {1, 64, 1000})
    anchors.emplace_back(rows, bare_postgres(session, rows, 2e6));
  measure(report, *store, *reader, "PostgreSQL", anchors, "bare PostgreSQL, one column");
}

}  // namespace

int main() {
  Report report;
  report.header();
  sqlite_without_disk(report);
  sqlite(report);
  postgres(report);
  return report.write() ? 0 : 1;
}
