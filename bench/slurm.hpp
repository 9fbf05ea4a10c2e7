// Slurm's controller on loopback, with 1,000 nodes that are down, so that its jobs wait as ours do;
// loaded as its users load it, by sbatch processes. It answers before a job is on disk: what it is
// asked for here is less than what ours does.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "served.hpp"

namespace gs::bench {

class Slurm {
 public:
  static bool is_installed() {
    return std::filesystem::exists("/usr/sbin/slurmctld") &&
           std::filesystem::exists("/usr/bin/sbatch");
  }

  explicit Slurm(const std::string& folder) : folder_(std::filesystem::absolute(folder)) {
    std::filesystem::create_directories(folder_ + "/state");
    configuration_ = folder_ + "/slurm.conf";
    std::ofstream(configuration_) << fmt::format(
        "ClusterName=bench\nSlurmctldHost=localhost\nSlurmUser={1}\nSlurmctldPort={2}\n"
        "SlurmdPort={3}\nAuthType=auth/none\nCredType=cred/none\nStateSaveLocation={0}/state\n"
        "SlurmctldPidFile={0}/slurmctld.pid\nSlurmdSpoolDir={0}/spool\n"
        "SlurmctldLogFile={0}/slurmctld.log\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n"
        "SelectType=select/cons_tres\nSchedulerType=sched/backfill\nMaxJobCount=1000000\n"
        "SlurmdTimeout=0\nGresTypes=gpu\n"
        "NodeName=n[1-1000] NodeAddr=127.0.0.1 CPUs=64 RealMemory=512000 Gres=gpu:8 State=UNKNOWN\n"
        "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE\n",
        folder_, getuid(), free_port(), free_port());
    controller_ = run({"/usr/sbin/slurmctld", "-D", "-f", configuration_});
    for (int i = 0; i < 100 && !ready_; ++i) {
      ready_ = ended_well(submit());
      if (!ready_) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~Slurm() {
    kill(controller_, SIGKILL);
    waitpid(controller_, nullptr, 0);
  }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;
  bool is_ready() const { return ready_; }

  // Submissions a second that were accepted, by so many sbatch at once.
  double submissions(int at_once, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    int running = 0, accepted = 0;
    while (spent() < seconds) {
      for (; running < at_once; ++running) submit();
      accepted += wait_for_one();
      --running;
    }
    const double took = spent();
    for (; running > 0; --running) wait_for_one();
    return accepted / took;
  }

 private:
  pid_t submit() const {
    return run({"/usr/bin/sbatch", "--parsable", "--gres=gpu:4", "--mem=64000",
                "--cpus-per-task=16", "--wrap", "python train.py"});
  }
  pid_t run(std::vector<std::string> words) const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setenv("SLURM_CONF", configuration_.c_str(), 1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    if (chdir(folder_.c_str()) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  static bool ended_well(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  static int wait_for_one() {
    int status = 0;
    return waitpid(-1, &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
  }

  std::string folder_, configuration_;
  pid_t controller_ = -1;
  bool ready_ = false;
};

}  // namespace gs::bench
