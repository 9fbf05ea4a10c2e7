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
  std::uint64_t bytes() const { return bytes_; }

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
        if (got > 0)
          bytes_ += static_cast<std::uint64_t>(got);
        else if (got == 0)
          epoll_ctl(epoll_, EPOLL_CTL_DEL, ready[i].data.fd, nullptr);
      }
    }
  }

  int epoll_ = -1;
  std::vector<int> fds_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::size_t> greeted_{0};  // to whom the server has said something
  std::thread thread_;
};

// Submissions a second; what they and the watchers cost the server goes into a row of its own,
// which tells more than the rate on a machine that others use too.
double submissions(const Served& served, const std::string& request, double seconds,
                   Report* report = nullptr) {
  Load load(served.port, 64);
  const double before = served.cpu_us();
  const LoadResult result = load.run([&]() -> const std::string& { return request; }, seconds);
  const double spent = served.cpu_us() - before;
  if (report != nullptr)
    report->add({"  the server's processor time, of one processor's", "%",
                 spent / result.seconds / 1e4, 0, "", true});
  if (report != nullptr)
    report->add({"  the same a submission", "us",
                 spent / static_cast<double>(std::max<std::uint64_t>(1, result.answers)), 0, "",
                 true});
  return result.rate();
}

void run(const std::string& binary, double seconds) {
  const std::string folder = "build/bench/streams-" + std::to_string(getpid());
  Report report;
  report.header();
  {
    const Served served(binary, folder, {"agent.local=off"});
    const std::string request = http_post("/api/v1/jobs", job_of(served.add_tenant()).dump());
    submissions(served, request, 1);  // warm
    const double alone = submissions(served, request, seconds, &report);
    report.add({"submissions, 64 connections, nobody watches", "/s", alone, 0, "", false});
    for (const auto& [count, websocket] : {std::pair(10'000, false), std::pair(1'000, true)}) {
      const Watchers watchers(served.port, count, websocket);
      const double rate = submissions(served, request, seconds, &report);
      report.add({fmt::format("submissions beside {} {}", watchers.count(),
                              websocket ? "WebSockets" : "event streams"),
                  "/s", rate, alone, "nobody watches", false});
      fmt::print("  {:.1f} MB of events were read\n", static_cast<double>(watchers.bytes()) / 1e6);
    }
    const double again = submissions(served, request, seconds);
    report.add({"submissions, nobody watches again", "/s", again, alone, "before", false});
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
  gs::bench::run(argv[1], argc > 2 ? std::atof(argv[2]) : 5.0);
  return 0;
}
