// cancel, hold, release, requeue, priority: changing jobs that are there.
#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"
#include "net/error_codes.hpp"

namespace gs::cli {
namespace {

struct Change {
  std::vector<std::string> jobs;
  int priority = 0;
  const char* method = "POST";
  const char* path = "";  // after the job
  bool has_priority = false;
};

Result<Json> change_one(Session& session, const std::string& job, const Change& change) {
  const Result<std::string> id = session.job_id(job, true);
  if (!id) return id.error();
  const Json body = change.has_priority ? Json{{"priority", change.priority}} : Json();
  return session.send(change.method, path_of("jobs", *id, change.path), body);
}

// Each one stands for itself; the first failure is the exit code.
Result<int> change_all(Cli& cli, Session& session, const Change& change) {
  Json answers = Json::array();
  std::string words;
  int code = 0;
  for (const std::string& job : change.jobs) {
    const Result<Json> answer = change_one(session, job, change);
    if (!answer && change.jobs.size() == 1) return answer.error();
    if (!answer) {
      fmt::print(stderr, "gpu-cli: {}: {}\n", job, answer.error().message);
      if (code == 0) code = outside_code(answer.error().code).exit;
      continue;
    }
    answers.push_back(*answer);
    words += change.jobs.size() == 1
                 ? text_of(*answer, "message") + "\n"
                 : fmt::format("{}: {}\n", text_of(*answer, "job_id"), text_of(*answer, "message"));
  }
  cli.show(change.jobs.size() == 1 ? answers.front() : answers, [&] { return words; });
  return code;
}

void add_change(CLI::App& app, Cli& cli, const char* name, const char* help, const char* method,
                const char* path) {
  auto change = std::make_shared<Change>();
  change->method = method;
  change->path = path;
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("jobs", change->jobs, "Ids or names of jobs")->required()->type_name("JOB");
  on_chosen(*command, cli, change, change_all);
}

}  // namespace

void add_job_changes(CLI::App& app, Cli& cli) {
  add_change(app, cli, "cancel", "Cancel jobs: they are stopped, or never start", "DELETE", "");
  add_change(app, cli, "hold", "Keep waiting jobs from starting", "POST", "hold");
  add_change(app, cli, "release", "Let held jobs start", "POST", "release");
  add_change(app, cli, "requeue", "Put jobs into the queue again: running ones stop first", "POST",
             "requeue");
  auto change = std::make_shared<Change>();
  change->method = "PATCH";
  change->has_priority = true;
  change->jobs.resize(1);
  CLI::App* command = app.add_subcommand("priority", "Change the priority of a waiting job");
  command->add_option("job", change->jobs.front(), "Id or name of the job")->required();
  command->add_option("priority", change->priority, "Higher goes first")->required();
  on_chosen(*command, cli, change, change_all);
}

}  // namespace gs::cli
