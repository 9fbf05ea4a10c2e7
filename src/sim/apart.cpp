#include "sim/apart.hpp"

#include <cstdio>
#include <map>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.hpp"

namespace gs {
namespace {

// A child at work. Its answers go to unlinked files: a pipe that fills up would hold it.
struct Child {
  pid_t pid = -1;
  std::FILE* answer = nullptr;
  std::FILE* last_words = nullptr;
  volatile std::uint64_t* progress = nullptr;
};

Child start(const ApartWork& work) {
  Child child;
  child.answer = std::tmpfile();
  child.last_words = std::tmpfile();
  void* shared = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(child.answer != nullptr && child.last_words != nullptr && shared != MAP_FAILED);
  child.progress = static_cast<volatile std::uint64_t*>(shared);
  std::fflush(nullptr);
  child.pid = fork();
  CHECK_MSG(child.pid >= 0, "fork failed");
  if (child.pid > 0) return child;
  dup2(fileno(child.last_words), STDERR_FILENO);
  const std::string answer = work(child.progress);
  std::fwrite(answer.data(), 1, answer.size(), child.answer);
  std::fflush(child.answer);
  _exit(0);
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char part[4096];
  while (const std::size_t n = std::fread(part, 1, sizeof part, file)) text.append(part, n);
  std::fclose(file);
  return text;
}

ApartResult finish(Child& child, int status) {
  ApartResult result;
  result.died = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  result.answer = read_all(child.answer);
  result.last_words = read_all(child.last_words);
  result.progress = *child.progress;
  munmap(const_cast<std::uint64_t*>(child.progress), sizeof(std::uint64_t));
  if (result.died && result.last_words.empty())
    result.last_words = WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                            : "exit code " + std::to_string(WEXITSTATUS(status));
  return result;
}

}  // namespace

ApartResult run_apart(const ApartWork& work) {
  Child child = start(work);
  int status = 0;
  waitpid(child.pid, &status, 0);
  return finish(child, status);
}

void run_all_apart(std::size_t count, int at_a_time,
                   const std::function<std::string(std::size_t, volatile std::uint64_t*)>& work,
                   const std::function<bool(std::size_t, const ApartResult&)>& done) {
  std::map<pid_t, std::pair<std::size_t, Child>> children;
  std::size_t next = 0;
  bool go_on = true;
  while (!children.empty() || (go_on && next < count)) {
    while (go_on && next < count && static_cast<int>(children.size()) < at_a_time) {
      const std::size_t number = next++;
      Child child = start([&](volatile std::uint64_t* progress) { return work(number, progress); });
      children[child.pid] = {number, child};
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    const auto it = children.find(pid);
    if (it == children.end()) continue;
    const ApartResult result = finish(it->second.second, status);
    go_on = done(it->second.first, result) && go_on;
    children.erase(it);
  }
}

}  // namespace gs
