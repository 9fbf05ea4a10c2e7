// What watchers cost those who submit: submissions a second with nobody watching, with 10,000 open
// streams of server-sent events, and with 1,000 WebSockets, in one run.
//
//   streams GPU_SCHEDULER_BINARY [SECONDS]
#include <atomic>
#include <unordered_set>

#include <sys/resource.h>

#include "report.hpp"
#include "served.hpp"

namespace gs::bench {
namespace {

// Connections that read whatever comes, on a thread of their own.
class Watchers {
 public:
  Watchers(std::uint16_t port, int count, bool websocket) {
    epoll_ = epoll_create1(0);
    const std::string request =
        websocket ? "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                  : "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
                    "Accept: text/event-stream\r\n\r\n";
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      // Many addresses of loopback: one alone has not enough ports for everybody.
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        close(fd);
        continue;
      }
      send(fd, request.data(), request.size(), MSG_NOSIGNAL);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      fds_.push_back(fd);
    }
    thread_ = std::thread([this] { read(); });
    // What is measured is open streams, not the opening of them.
    while (greeted_ < fds_.size()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Watchers() {
    stop_ = true;
    thread_.join();
    for (const int fd : fds_) close(fd);
    close(epoll_);
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  std::size_t count() const { return fds_.size(); }

 private:
  void read() {
    std::unordered_set<int> greeted;
    epoll_event ready[256];
    std::vector<char> buffer(1 << 18);
    while (!stop_) {
      const int n = epoll_wait(epoll_, ready, 256, 50);
      for (int i = 0; i < n; ++i) {
        const ssize_t got = recv(ready[i].data.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got >= 0 && greeted.insert(ready[i].data.fd).second) ++greeted_;
        if (got == 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, ready[i].data.fd, nullptr);
      }
    }
  }

  int epoll_ = -1;
  std::vector<int> fds_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> greeted_{0};  // to whom the server has said something
  std::thread thread_;
};

struct Measured {
  double rate = 0;    // submissions a second
  double cpu_us = 0;  // the server's processor time for one, which other load changes less
};

Measured submissions(const Served& served, const std::string& request, double seconds) {
  // What was left to do for those before, watchers that have gone among it, is done by then.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Load load(served.port, 64);
  const double before = served.cpu_us();
  const LoadResult result = load.run([&]() -> const std::string& { return request; }, seconds);
  const auto answers = static_cast<double>(std::max<std::uint64_t>(1, result.answers));
  return {result.rate(), (served.cpu_us() - before) / answers};
}

Measured median(std::vector<Measured> all) {
  Measured out;
  for (double Measured::*part : {&Measured::rate, &Measured::cpu_us}) {
    std::sort(all.begin(), all.end(),
              [&](const Measured& a, const Measured& b) { return a.*part < b.*part; });
    out.*part = all[all.size() / 2].*part;
  }
  return out;
}

void add_rows(Report& report, const std::string& name, const Measured& here,
              const Measured& alone) {
  const bool is_alone = &here == &alone;
  report.add(
      {name, "/s", here.rate, is_alone ? 0 : alone.rate, is_alone ? "" : "nobody watches", false});
  report.add({"  the server's processor time each", "us", here.cpu_us, is_alone ? 0 : alone.cpu_us,
              is_alone ? "" : "nobody watches", true});
}

// In turns, because the rate of such a machine, and of a server that fills up, drifts by more than
// what is looked for.
void run(const std::string& binary, double seconds) {
  constexpr int kRounds = 5;
  const std::string folder = "build/bench/streams-" + std::to_string(getpid());
  Report report;
  report.header();
  {
    const Served served(binary, folder, {"agent.local=off"});
    const std::string request = http_post("/api/v1/jobs", job_of(served.add_tenant()).dump());
    submissions(served, request, 1);  // warm
    std::vector<Measured> nobody, streams, sockets;
    std::size_t stream_count = 0, socket_count = 0;
    for (int round = 0; round < kRounds; ++round) {
      nobody.push_back(submissions(served, request, seconds));
      for (const bool websocket : {false, true}) {
        const Watchers watchers(served.port, websocket ? 1'000 : 10'000, websocket);
        (websocket ? socket_count : stream_count) = watchers.count();
        (websocket ? sockets : streams).push_back(submissions(served, request, seconds));
      }
    }
    for (int i = 0; i < kRounds; ++i)
      fmt::print("  turn {}: nobody {:.0f}/s, streams {:.0f}/s, WebSockets {:.0f}/s\n", i + 1,
                 nobody[i].rate, streams[i].rate, sockets[i].rate);
    const Measured alone = median(nobody);
    add_rows(report, "submissions, 64 connections, nobody watches", alone, alone);
    add_rows(report, fmt::format("submissions beside {} event streams", stream_count),
             median(streams), alone);
    add_rows(report, fmt::format("submissions beside {} WebSockets", socket_count), median(sockets),
             alone);
    fmt::print("  medians of {} turns\n", kRounds);
  }
  std::filesystem::remove_all(folder);
  report.write();
}

}  // namespace
}  // namespace gs::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: streams GPU_SCHEDULER_BINARY [SECONDS]\n");
    return 2;
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
  gs::bench::run(argv[1], argc > 2 ? std::atof(argv[2]) : 3.0);
  return 0;
}
