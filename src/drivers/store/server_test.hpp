// A PostgreSQL server of our own for tests and benchmarks: in a temporary folder, reached by a
// socket there, with fsync on. Stopped and removed with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/store/open.hpp"

namespace gs::store {

class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  explicit TemporaryFolder(const std::filesystem::path& where) {
    std::string name = (where / "gpu-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? std::string() : name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class PostgresServer {
 public:
  static bool is_installed() { return !binaries().empty(); }

  PostgresServer() {
    if (::geteuid() == 0) (void)::chown(folder_.path().c_str(), owner().uid, owner().gid);
    (void)::chmod(folder_.path().c_str(), 0755);
    ok_ = call({"initdb", "-D", folder_ / "data", "-U", "gpu", "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync"}) == 0;
    std::ofstream config(folder_ / "data/postgresql.conf", std::ios::app);
    config << "listen_addresses = ''\nunix_socket_directories = '" << folder_.path()
           << "'\nfsync = on\nmax_connections = 40\nshared_buffers = 256MB\nmax_wal_size = 2GB\n"
              "recovery_init_sync_method = syncfs\n";
    config.close();
    ok_ = ok_ && start();
  }
  ~PostgresServer() {
    (void)call({"pg_ctl", "-D", folder_ / "data", "-m", "immediate", "-w", "stop"});
  }
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  bool ok() const { return ok_; }
  PostgresSettings settings(const std::string& database = "postgres") const {
    PostgresSettings settings;
    settings.host = folder_.path();
    settings.user = "gpu";
    settings.database = database;
    return settings;
  }
  bool start() {
    return call({"pg_ctl", "-D", folder_ / "data", "-l", folder_ / "log", "-w", "-t", "60",
                 "start"}) == 0;
  }
  // As if the power went: no process of it gets to say a word.
  void kill() {
    const pid_t pid = postmaster();
    if (pid <= 1) return;
    std::vector<pid_t> processes{pid};
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t child = std::atoi(entry.path().filename().c_str());
      std::string text;
      std::ifstream stat(entry.path() / "stat");
      if (child <= 1 || !std::getline(stat, text)) continue;
      const std::size_t after = text.rfind(')');
      if (after != std::string::npos && std::atoi(text.c_str() + after + 4) == pid)
        processes.push_back(child);
    }
    for (const pid_t process : processes) ::kill(process, SIGKILL);
    for (int i = 0; i < 500 && postmaster() == pid; ++i) ::usleep(10'000);
    // Where nobody collects dead processes, the next server would take them for running ones.
    for (const char* file : {"data/postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"})
      ::unlink((folder_ / file).c_str());
  }
  int create_database(const std::string& name) const {
    return call({"createdb", "-h", folder_.path(), "-U", "gpu", name});
  }
  // What psql prints for it, without headings.
  std::string psql(const std::string& database, const std::string& sql) const {
    const std::string out = folder_ / "psql.out";
    (void)call({"psql", "-h", folder_.path(), "-U", "gpu", "-d", database, "-X", "-A", "-t", "-c",
                sql, "-o", out});
    std::ifstream file(out);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  // 0 where it does not run: a number that was left behind may be another process by now.
  pid_t postmaster() const {
    pid_t pid = 0;
    std::ifstream file(folder_ / "data/postmaster.pid");
    if (!(file >> pid) || pid <= 1) return 0;
    std::ifstream words("/proc/" + std::to_string(pid) + "/cmdline");
    std::string line;
    std::getline(words, line);
    return line.find(folder_.path()) == std::string::npos ? 0 : pid;
  }

  struct Owner {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  static std::string binaries() {
    for (const char* version : {"15", "16", "17", "14"}) {
      std::string folder = std::string("/usr/lib/postgresql/") + version + "/bin";
      if (::access((folder + "/initdb").c_str(), X_OK) == 0) return folder;
    }
    return {};
  }
  // PostgreSQL refuses to run as root.
  static Owner owner() {
    for (const char* name : {"postgres", "nobody"})
      if (const passwd* entry = ::getpwnam(name)) return {entry->pw_uid, entry->pw_gid};
    return {};
  }
  int call(const std::vector<std::string>& arguments) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(owner().gid) != 0 ||
                               ::setuid(owner().uid) != 0))
        ::_exit(126);
      const int null = ::open("/dev/null", O_RDWR);
      for (const int to : {0, 1, 2}) ::dup2(null, to);
      if (::chdir("/") != 0) ::_exit(126);
      std::vector<std::string> words = arguments;
      words[0] = binaries() + "/" + words[0];
      std::vector<char*> raw;
      for (std::string& word : words) raw.push_back(word.data());
      raw.push_back(nullptr);
      ::execv(raw[0], raw.data());
      ::_exit(127);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TemporaryFolder folder_;
  bool ok_ = false;
};

}  // namespace gs::store
