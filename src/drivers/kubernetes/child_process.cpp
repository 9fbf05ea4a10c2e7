#include "drivers/kubernetes/child_process.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gs::kube {
namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() { close(ends_[0]); }
  void close_writer() { close(ends_[1]); }

 private:
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  int ends_[2];
};

struct Spawn {
  Spawn() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<std::string> environment(const ChildCommand& command) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool is_replaced = false;
    for (const auto& [key, value] : command.env) is_replaced = is_replaced || key == name;
    if (!is_replaced) out.emplace_back(text);
  }
  for (const auto& [key, value] : command.env) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<pid_t> start(const ChildCommand& command, const Pipe& output, const Pipe& errors) {
  Spawn spawn;
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawn.actions, output.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, errors.writer(), STDERR_FILENO);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) sigaddset(&usual, signal);
  posix_spawnattr_setsigmask(&spawn.attributes, &none);
  posix_spawnattr_setsigdefault(&spawn.attributes, &usual);
  posix_spawnattr_setpgroup(&spawn.attributes, 0);  // what it starts can be killed with it
  posix_spawnattr_setflags(&spawn.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> args = command.args;
  args.insert(args.begin(), command.program);
  std::vector<std::string> env = environment(command);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, command.program.c_str(), &spawn.actions, &spawn.attributes,
                                   pointers(args).data(), pointers(env).data());
  if (error != 0) return Error{ErrorCode::Unavailable, std::strerror(error)};
  return pid;
}

// False: the end of it.
bool read_some(int from, std::string& into) {
  char buffer[16384];
  const ssize_t count = ::read(from, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  into.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

// Reads both to their ends. An error: too long, too much.
Status read_both(const ChildCommand& command, Pipe& output, Pipe& errors, ChildOutput& out) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(command.timeout.ms);
  while (output.reader() >= 0 || errors.reader() >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return Error{ErrorCode::Unavailable,
                   "did not end within " + std::to_string(command.timeout.ms) + " ms"};
    pollfd files[] = {{output.reader(), POLLIN, 0}, {errors.reader(), POLLIN, 0}};
    if (::poll(files, 2, static_cast<int>(left)) < 0 && errno != EINTR)
      return Error{ErrorCode::Unavailable, std::strerror(errno)};
    if (files[0].revents != 0 && !read_some(output.reader(), out.output)) output.close_reader();
    if (files[1].revents != 0 && !read_some(errors.reader(), out.errors)) errors.close_reader();
    if (out.output.size() + out.errors.size() > command.max_output)
      return Error{ErrorCode::Unavailable,
                   "wrote more than " + std::to_string(command.max_output) + " bytes"};
  }
  return ok_status();
}

}  // namespace

Result<ChildOutput> run_child(const ChildCommand& command) {
  Pipe output, errors;
  if (output.reader() < 0 || errors.reader() < 0)
    return Error{ErrorCode::Unavailable, std::strerror(errno)};
  const auto pid = start(command, output, errors);
  output.close_writer();
  errors.close_writer();
  if (!pid) return pid.error();
  ChildOutput out;
  const Status read = read_both(command, output, errors, out);
  if (!read) ::kill(-*pid, SIGKILL);
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!read) return read.error();
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

}  // namespace gs::kube
