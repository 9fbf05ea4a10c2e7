// Durable submissions over HTTP: how many a second, how soon answered, how soon running; beside the
// bare limit of the same machine in the same run, and the figures of peers.
//
//   submit GPU_SCHEDULER_BINARY [SECONDS] [--slurm]      (make bench-submit)
//
// --slurm: Slurm is measured in the same run where it is installed; else its figures are quoted.
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "bare_server.hpp"
#include "drivers/store/server_test.hpp"
#include "load.hpp"
#include "report.hpp"
#include "served.hpp"
#include "slurm.hpp"

namespace gs::bench {
namespace {

constexpr double kSlurmRate = 150;      // Slurm 22.05, sbatch, 1,000 nodes, 2 cores: quoted
constexpr double kSlurmStartMs = 1400;  // from submission to the start of a job, median

class Bench {
 public:
  Bench(std::string binary, double seconds, bool with_slurm)
      : binary_(std::move(binary)), seconds_(seconds), with_slurm_(with_slurm) {
    folder_ = "build/bench/submit-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  ~Bench() { std::filesystem::remove_all(folder_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    report_.header();
    for (const int connections : {1, 16, 64, 256}) bare_[connections] = bare(connections);
    if (with_slurm_) slurm();
    sqlite();
    postgres();
    start_latency();
    report_.write();
  }

 private:
  double bare(int connections) {
    const BareServer server(folder_ + "/bare-" + std::to_string(connections) + ".db");
    Load load(server.port(), connections);
    const std::string request = http_post("/", job_of("tenant-1794755761965000000").dump());
    LoadResult result = load.run([&]() -> const std::string& { return request; }, seconds_);
    report_.add({fmt::format("bare limit, SQLite, {} connections", connections), "/s",
                 result.rate(), 0, "", false});
    return result.rate();
  }

  void slurm() {
    if (!Slurm::is_installed()) {
      fmt::print("Slurm is not installed (scripts/setup.sh --slurm): its figures are quoted\n");
      return;
    }
    Slurm server(folder_ + "/slurm");
    if (!server.is_ready()) {
      fmt::print("Slurm does not start: its figures are quoted\n");
      return;
    }
    slurm_rate_ = server.submissions(16, std::max(seconds_, 5.0));
    slurm_name_ = "Slurm in this run";
    report_.add({"submissions, Slurm, 16 sbatch at once", "/s", slurm_rate_, 0, "", false});
  }

  void sqlite() {
    const Served served(binary_, folder_ + "/sqlite", {"agent.local=off"});
    measure("SQLite", served, true);
  }

  void postgres() {
    if (!store::PostgresServer::is_installed()) {
      fmt::print("PostgreSQL is not installed: skipped\n");
      return;
    }
    const store::PostgresServer server;
    const PostgresSettings settings = server.settings();
    const Served served(
        binary_, folder_ + "/postgres",
        {"agent.local=off", "database.host=" + settings.host,
         "database.port=" + std::to_string(settings.port), "database.user=" + settings.user,
         "database.database=" + settings.database});
    measure("PostgreSQL", served, false);
  }

  void measure(const std::string& name, const Served& served, bool against_bare) {
    const std::string tenant = served.add_tenant();
    const std::string one = http_post("/api/v1/jobs", job_of(tenant).dump());
    double at_64 = 0;
    for (const int connections : {1, 16, 64, 256}) {
      Load load(served.port, connections);
      const double cpu_before = served.cpu_us();
      LoadResult result = load.run([&]() -> const std::string& { return one; }, seconds_);
      const double cpu = served.cpu_us() - cpu_before;
      if (connections == 64) at_64 = result.rate();
      const double limit = against_bare ? bare_[connections] : slurm_rate_;
      report_.add({fmt::format("submissions, {}, {} connections", name, connections), "/s",
                   result.rate(), limit, against_bare ? "bare limit in this run" : slurm_name_,
                   false});
      report_.add({fmt::format("  processor time each, {}, {} connections", name, connections),
                   "us", cpu / static_cast<double>(std::max<std::uint64_t>(1, result.answers)), 0,
                   "", true});
      if (result.failures > 0) fmt::print("  {} failed\n", result.failures);
    }
    Json list = Json::array();
    for (int i = 0; i < 100; ++i) list.push_back(job_of(tenant));
    const std::string many = http_post("/api/v1/jobs/batch", Json{{"jobs", list}}.dump());
    Load batches(served.port, 16);
    LoadResult batched = batches.run([&]() -> const std::string& { return many; }, seconds_);
    report_.add({fmt::format("submissions, {}, in batches of 100", name), "/s",
                 batched.rate() * 100, 70'000, "aim", false});
    Load half(served.port, 64);
    LoadResult calm = half.run([&]() -> const std::string& { return one; }, seconds_, at_64 / 2);
    report_.add({fmt::format("answer p50, {}, 64 connections, half load", name), "ms",
                 calm.percentile(0.5) / 1000, 0, "", true});
    report_.add({fmt::format("answer p99, {}, 64 connections, half load", name), "ms",
                 calm.percentile(0.99) / 1000, 20, "aim", true});
  }

  // From submission to running, one job after the other on an idle machine.
  void start_latency() {
    const Served served(binary_, folder_ + "/start",
                        {"agent.local=on", "agent.simulate=8xH100-SXM5-80GB"});
    const std::string tenant = served.add_tenant();
    for (int i = 0; i < 200; ++i) {
      const Json status = Json::parse(get(served.port, "/api/v1/cluster/status"), nullptr, false);
      if (status.value("online_nodes", 0) > 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    Json job{{"name", "quick"}, {"tenant_id", tenant}, {"gpu_count", 1}, {"command", {"true"}}};
    std::vector<double> waits;
    for (int i = 0; i < 50; ++i) {
      const Stopwatch watch;
      const Json answer = Json::parse(post(served.port, "/api/v1/jobs", job), nullptr, false);
      const std::string path = "/api/v1/jobs/" + answer.value("job_id", "");
      for (;;) {
        const Json now = Json::parse(get(served.port, path), nullptr, false);
        const std::string state = now.value("state", "");
        if (state != "pending" && state != "scheduled") break;
        if (watch.us() > 5e6) break;
      }
      waits.push_back(watch.us() / 1000);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    std::sort(waits.begin(), waits.end());
    report_.add({"submission to running, p50, idle machine", "ms", waits[waits.size() / 2],
                 kSlurmStartMs, "Slurm 22.05, quoted", true});
    report_.add({"submission to running, p95, idle machine", "ms", waits[waits.size() * 95 / 100],
                 0, "", true});
  }

  std::string binary_;
  double seconds_;
  bool with_slurm_;
  double slurm_rate_ = kSlurmRate;
  const char* slurm_name_ = "Slurm 22.05, quoted";
  std::string folder_;
  Report report_;
  std::map<int, double> bare_;
};

}  // namespace
}  // namespace gs::bench

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool with_slurm = std::erase(words, "--slurm") > 0;
  if (words.empty()) {
    fmt::print(stderr, "usage: submit GPU_SCHEDULER_BINARY [SECONDS] [--slurm]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  gs::bench::Bench bench(words[0], words.size() > 1 ? std::atof(words[1].c_str()) : 4.0,
                         with_slurm);
  bench.run();
  return 0;
}
