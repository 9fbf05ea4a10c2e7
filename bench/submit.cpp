// Durable submissions over HTTP: how many a second, how soon answered, how soon running; beside the
// bare limit of the same machine in the same run, and the figures of peers.
//
//   submit GPU_SCHEDULER_BINARY [SECONDS]      (make bench-submit)
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare_server.hpp"
#include "drivers/store/server_test.hpp"
#include "load.hpp"
#include "report.hpp"

namespace gs::bench {
namespace {

using Json = nlohmann::json;

constexpr double kSlurmRate = 150;      // Slurm 22.05, sbatch, 1,000 nodes, 2 cores
constexpr double kSlurmStartMs = 1400;  // from submission to the start of a job, median

std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// One request on a connection of its own; the body of the answer.
std::string ask(std::uint16_t port, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    char buffer[65536];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? std::string{} : answer.substr(head + 4);
}

std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

std::string post(std::uint16_t port, const std::string& path, const Json& body) {
  std::string bytes = http_post(path, body.dump());
  bytes.insert(bytes.find("\r\n") + 2, "Connection: close\r\n");
  return ask(port, bytes);
}

class Served {
 public:
  Served(const std::string& binary, const std::string& folder,
         const std::vector<std::string>& settings) {
    std::filesystem::create_directories(folder);
    port = free_port();
    std::vector<std::string> words = {binary, "serve", "--state-dir", folder};
    std::vector<std::string> all = settings;
    all.push_back("api.http_port=" + std::to_string(port));
    all.push_back("api.grpc_port=" + std::to_string(free_port()));
    all.push_back("metrics.port=" + std::to_string(free_port()));
    all.push_back("scheduler.max_queue_size=1000000000");
    all.push_back("log.level=warn");
    for (const std::string& one : all) words.insert(words.end(), {"--set", one});
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      const int log = open((folder + "/serve.log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(log, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
    for (int i = 0; i < 500 && get(port, "/ready").find("ready") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Served() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::string add_tenant() const {
    const Json tenant{{"name", "bench"},
                      {"max_gpus", 1000000},
                      {"max_gpu_memory_mb", 1000000000},
                      {"max_cpu_cores", 1000000},
                      {"max_memory_mb", 1000000000},
                      {"max_concurrent_jobs", 1000000}};
    return Json::parse(post(port, "/api/v1/tenants", tenant)).at("id");
  }

  std::uint16_t port = 0;

 private:
  pid_t pid_ = -1;
};

Json job_of(const std::string& tenant) {
  return Json{{"name", "AI Training Job"},
              {"tenant_id", tenant},
              {"gpu_count", 4},
              {"priority", 1000},
              {"command", {"python", "train.py"}},
              {"image", "pytorch:2.0"},
              {"gpu_memory_mb", 40000},
              {"cpu_cores", 16},
              {"memory_mb", 64000}};
}

class Bench {
 public:
  Bench(std::string binary, double seconds) : binary_(std::move(binary)), seconds_(seconds) {
    folder_ = "build/bench/submit-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  ~Bench() { std::filesystem::remove_all(folder_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    report_.header();
    for (const int connections : {1, 16, 64, 256}) bare_[connections] = bare(connections);
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
      LoadResult result = load.run([&]() -> const std::string& { return one; }, seconds_);
      if (connections == 64) at_64 = result.rate();
      const double limit = against_bare ? bare_[connections] : kSlurmRate;
      report_.add({fmt::format("submissions, {}, {} connections", name, connections), "/s",
                   result.rate(), limit, against_bare ? "bare limit in this run" : "Slurm 22.05",
                   false});
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
                 kSlurmStartMs, "Slurm 22.05", true});
    report_.add({"submission to running, p95, idle machine", "ms", waits[waits.size() * 95 / 100],
                 0, "", true});
  }

  std::string binary_;
  double seconds_;
  std::string folder_;
  Report report_;
  std::map<int, double> bare_;
};

}  // namespace
}  // namespace gs::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: submit GPU_SCHEDULER_BINARY [SECONDS]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  gs::bench::Bench bench(argv[1], argc > 2 ? std::atof(argv[2]) : 4.0);
  bench.run();
  return 0;
}
