// A long history: how soon the service answers after a start, and how long lists take, with a
// million jobs that have ended.
//
//   history GPU_SCHEDULER_BINARY [JOBS]
#include "drivers/store/open.hpp"
#include "report.hpp"
#include "served.hpp"
#include "service/records.hpp"

namespace gs::bench {
namespace {

constexpr int kBatch = 2000;

JobRow ended_job(std::int64_t number, const std::string& tenant) {
  JobRow row;
  row.seq = 1'700'000'000'000'000'000 + number * 1'000'000;
  row.tenant = tenant;
  row.name = "training-" + std::to_string(number % 1000);
  row.gpu_count = static_cast<int>(number % 8);
  row.spec = job_of(tenant).dump();
  row.submitted = Instant{row.seq / 1'000'000};
  row.state = number % 10 == 0 ? RunState::Failed : RunState::Completed;
  row.priority = static_cast<int>(number % 20) * 100;
  row.scheduled = row.started = row.completed = row.submitted + seconds(60);
  row.attempt = 1;
  row.exit_code = 0;
  return row;
}

bool fill(const std::string& path, std::int64_t jobs, std::string& tenant) {
  SqliteSettings settings;
  settings.path = path;
  Result<std::unique_ptr<Store>> store = open_sqlite(settings);
  if (!store || !*(*store)->try_lead()) return false;
  Result<Loaded> loaded = (*store)->load();
  if (!loaded) return false;
  TenantRow row;
  row.seq = 1'600'000'000'000'000'000;
  row.spec.name = "history";
  row.spec.max_gpus = 1000;
  row.total_jobs = jobs;
  tenant = tenant_id(row.seq);
  std::uint64_t turn = loaded->turn;
  for (std::int64_t done = 0; done < jobs; done += kBatch) {
    Batch batch;
    batch.turn = ++turn;
    if (done == 0) batch.tenants.push_back(row);
    for (std::int64_t i = done; i < std::min(jobs, done + kBatch); ++i)
      batch.added.push_back(ended_job(i, tenant));
    if (!(*store)->commit(batch)) return false;
  }
  return true;
}

void run(const std::string& binary, std::int64_t jobs) {
  const std::string folder = "build/bench/history-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  Report report;
  report.header();
  std::string tenant;
  if (!fill(folder + "/gpu-scheduler.db", jobs, tenant)) {
    fmt::print(stderr, "the history could not be written\n");
    return;
  }
  {
    const Stopwatch watch;
    const Served served(binary, folder, {"agent.local=off", "store.retention_days_jobs=0"});
    report.add({fmt::format("start until ready, {} jobs of history", jobs), "ms", watch.us() / 1000,
                3000, "aim", true});
    for (const char* query :
         {"?limit=50", "?state=failed&limit=50", "?sort=-priority&limit=50", "?sort=name&limit=50",
          "?name=training-7&limit=50", "?state=running&limit=50", "?offset=10000&limit=50"}) {
      std::vector<double> times;
      for (int i = 0; i < 9; ++i) {
        const Stopwatch one;
        (void)get(served.port, std::string("/api/v1/jobs") + query);
        times.push_back(one.us() / 1000);
      }
      std::sort(times.begin(), times.end());
      report.add(
          {fmt::format("GET /api/v1/jobs{}", query), "ms", times[times.size() / 2], 0, "", true});
    }
  }
  std::filesystem::remove_all(folder);
  report.write();
}

}  // namespace
}  // namespace gs::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: history GPU_SCHEDULER_BINARY [JOBS]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  gs::bench::run(argv[1], argc > 2 ? std::atoll(argv[2]) : 1'000'000);
  return 0;
}
