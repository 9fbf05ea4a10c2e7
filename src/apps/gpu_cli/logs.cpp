// logs: what jobs write; and following a job to its end.
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

struct Logs {
  std::string job;
  bool follow = false;
  std::optional<std::int64_t> tail, rank;
};

bool is_final(const Json& job) {
  const std::string state = text_of(job, "state");
  return state == "completed" || state == "failed" || state == "cancelled";
}

Status print_log(Session& session, const std::string& id, const std::string& query) {
  return session.stream(path_of("jobs", id, "logs") + query, "text/plain",
                        [](std::string_view piece) {
                          put(piece);
                          return true;
                        });
}

Result<int> logs(Cli&, Session& session, const Logs& flags) {
  const Result<std::string> id = session.job_id(flags.job);
  if (!id) return id.error();
  const std::string query = query_text({{"tail", flags.tail ? std::to_string(*flags.tail) : ""},
                                        {"rank", flags.rank ? std::to_string(*flags.rank) : ""},
                                        {"follow", flags.follow ? "true" : ""}});
  if (flags.follow) {  // a job that waits has no log yet: wait with it
    Result<Json> job = session.get(path_of("jobs", *id));
    if (job && number_of(*job, "attempt") == 0 && !is_final(*job))
      fmt::print(stderr, "gpu-cli: {} has not started yet; waiting (gpu-cli why {})\n", *id, *id);
    while (job && number_of(*job, "attempt") == 0 && !is_final(*job)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      job = session.get(path_of("jobs", *id));
    }
    if (!job) return job.error();
  }
  if (Status s = print_log(session, *id, query); !s) return s.error();
  return 0;
}

}  // namespace

Result<Json> follow_job(Session& session, const std::string& id, bool with_log) {
  constexpr std::int64_t kShortestMs = 200, kLongestMs = 2000;
  std::int64_t pause_ms = kShortestMs;
  int shown = 0;  // the attempt whose log was shown last
  for (;;) {
    Result<Json> job = session.get(path_of("jobs", id));
    if (!job) return job.error();
    const bool over = is_final(*job);
    const int attempt = static_cast<int>(number_of(*job, "attempt"));
    const bool has_log = text_of(*job, "state") == "running" || over;
    if (with_log && has_log && attempt > shown) {
      const Status s = print_log(session, id, over ? "" : "?follow=true");
      if (!s && s.error().code != ErrorCode::NotFound) return s.error();
      shown = attempt;
      pause_ms = kShortestMs;
      if (!over) continue;
    }
    if (over) return job;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    pause_ms = std::min(kLongestMs, pause_ms * 3 / 2);
  }
}

int exit_code_of(const Json& job) {
  if (text_of(job, "state") == "completed") return 0;
  const int code = static_cast<int>(number_of(job, "exit_code"));
  const int signal = static_cast<int>(number_of(job, "signal"));
  if (code != 0) return code & 0xFF ? code & 0xFF : 1;
  return signal != 0 ? 128 + signal : 1;
}

void add_logs(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Logs>();
  CLI::App* command = app.add_subcommand("logs", "What a job has written");
  command->add_option("job", flags->job, "Id or name of the job")->required();
  command->add_flag("-f,--follow", flags->follow, "Go on as it grows, until the job ends");
  command->add_option("--tail", flags->tail, "Only so many lines of the end");
  command->add_option("--rank", flags->rank, "Of which process of a gang (default: 0)");
  on_chosen(*command, cli, flags, logs);
}

}  // namespace gs::cli
