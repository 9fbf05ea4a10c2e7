// A load generator: many keep-alive HTTP connections on one thread, each sending its next request
// when the answer to the one before has come. It does as little as possible per request, so that it
// takes little from the server beside it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gs::bench {

struct LoadResult {
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;  // not 2xx, or broken connections
  double seconds = 0;
  std::vector<float> latencies_us;

  double rate() const { return seconds > 0 ? static_cast<double>(answers) / seconds : 0; }
  double percentile(double p) {
    if (latencies_us.empty()) return 0;
    std::sort(latencies_us.begin(), latencies_us.end());
    const auto at = static_cast<std::size_t>(p * static_cast<double>(latencies_us.size() - 1));
    return latencies_us[at];
  }
};

inline std::string http_post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class Load {
 public:
  Load(std::uint16_t port, int connections) : port_(port), wanted_(connections) {}
  ~Load() {
    for (const Connection& c : connections_) close(c.fd);
    if (epoll_ >= 0) close(epoll_);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // At most `per_second` requests a second over all connections; 0: as many as it can.
  LoadResult run(const std::function<const std::string&()>& request, double seconds,
                 double per_second = 0) {
    using Clock = std::chrono::steady_clock;
    LoadResult result;
    if (!open()) return result;
    const auto begin = Clock::now();
    const auto now_us = [&] {
      return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    };
    const double end_us = seconds * 1e6;
    std::uint64_t sent = 0;
    std::vector<std::size_t> idle(connections_.size());
    for (std::size_t i = 0; i < idle.size(); ++i) idle[i] = i;
    std::size_t busy = 0;
    epoll_event ready[256];
    for (double now = 0; now < end_us || (busy > 0 && now < end_us + 5e6); now = now_us()) {
      while (!idle.empty() && now < end_us &&
             (per_second <= 0 || static_cast<double>(sent) < now / 1e6 * per_second)) {
        Connection& c = connections_[idle.back()];
        idle.pop_back();
        c.sent_us = now;
        ++sent;
        ++busy;
        const std::string& bytes = request();
        if (send(c.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(bytes.size()))
          ++result.failures;
      }
      const int timeout = per_second > 0 ? 1 : 100;
      const int n = epoll_wait(epoll_, ready, 256, timeout);
      for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(ready[i].data.u64);
        if (!receive(connections_[at], result, now_us())) continue;
        --busy;
        idle.push_back(at);
      }
    }
    result.seconds = std::min(now_us(), end_us) / 1e6;
    return result;
  }

 private:
  struct Connection {
    int fd = -1;
    double sent_us = 0;
    std::string buffer;
  };

  bool open() {
    if (epoll_ >= 0) return true;
    epoll_ = epoll_create1(0);
    for (int i = 0; i < wanted_; ++i) {
      Connection c;
      c.fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port_);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (connect(c.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
      const int one = 1;
      setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = connections_.size();
      epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &event);
      connections_.push_back(std::move(c));
    }
    return true;
  }

  // True: a whole answer is there.
  bool receive(Connection& c, LoadResult& result, double now_us) {
    char bytes[65536];
    const ssize_t n = recv(c.fd, bytes, sizeof bytes, 0);
    if (n <= 0) {
      ++result.failures;
      epoll_ctl(epoll_, EPOLL_CTL_DEL, c.fd, nullptr);
      return false;
    }
    c.buffer.append(bytes, static_cast<std::size_t>(n));
    const std::size_t head = c.buffer.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t field = c.buffer.find("Content-Length: ");
    const std::size_t length =
        field < head ? std::strtoul(c.buffer.c_str() + field + 16, nullptr, 10) : 0;
    if (c.buffer.size() < head + 4 + length) return false;
    if (c.buffer.compare(9, 1, "2") == 0)
      ++result.answers;
    else
      ++result.failures;
    result.latencies_us.push_back(static_cast<float>(now_us - c.sent_us));
    c.buffer.clear();
    return true;
  }

  std::uint16_t port_;
  int wanted_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
};

}  // namespace gs::bench
