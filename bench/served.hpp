// A `gpu-scheduler serve` of a benchmark's own, on free ports and in a folder of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.hpp"

namespace gs::bench {

using Json = nlohmann::json;

inline std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no free port");
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// One request on a connection of its own; the body of the answer.
inline std::string ask(std::uint16_t port, const std::string& bytes) {
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

inline std::string get(std::uint16_t port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

inline std::string post(std::uint16_t port, const std::string& path, const Json& body) {
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

  // Processor time that its threads have used. Beside a rate it tells what is our own work on a
  // machine that others use too.
  double cpu_us() const {
    double sum = 0;
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
      double ns = 0;
      std::ifstream(task.path() / "schedstat") >> ns;
      sum += ns / 1000;
    }
    return sum;
  }

  std::uint16_t port = 0;

 private:
  pid_t pid_ = -1;
};

inline Json job_of(const std::string& tenant) {
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

}  // namespace gs::bench
