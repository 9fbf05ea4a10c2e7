// submit: flags and files as jobs, and what came of them.
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "apps/gpu_cli/amounts.hpp"
#include "apps/gpu_cli/cli.hpp"
#include "apps/gpu_cli/explain.hpp"

namespace gs::cli {
namespace {

constexpr const char* kUsualScript = "nvidia-smi";

struct Submit {
  std::optional<std::string> name, gpu_model, gpu_memory, mig, memory, working_dir, user, image,
      script, max_runtime, expected_runtime;
  std::optional<int> priority, gpus, gpu_milli, nodes, gpus_per_node, array;
  std::optional<double> cpus;
  std::vector<std::string> environment, labels, node_selector, depends_on, after_any;
  std::vector<std::string> checkpoint;  // --checkpoint, or --checkpoint=PATH
  CLI::Option* checkpoint_option = nullptr;
  bool gang = false, hold = false, no_preemption = false;
  std::string file, idempotency_key;
  bool dry_run = false, wait = false, follow = false;
};

template <typename T>
void set(Json& job, const char* field, const std::optional<T>& value) {
  if (value) job[field] = *value;
}

Result<std::string> read_input(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return invalid("cannot read " + path);
  return text.str();
}

Status set_amounts(Json& job, const Submit& flags) {
  set(job, "priority", flags.priority);
  set(job, "gpu_count", flags.gpus);
  set(job, "gpu_milli", flags.gpu_milli);
  set(job, "gpu_model", flags.gpu_model);
  set(job, "mig_profile", flags.mig);
  set(job, "cpu_cores", flags.cpus);
  set(job, "nodes", flags.nodes);
  set(job, "gpus_per_node", flags.gpus_per_node);
  set(job, "array", flags.array);
  for (const auto& [field, text] :
       {std::pair("gpu_memory_mb", &flags.gpu_memory), std::pair("memory_mb", &flags.memory)})
    if (*text) {
      const Result<std::int64_t> mib = parse_mib(**text);
      if (!mib) return mib.error();
      job[field] = *mib;
    }
  for (const auto& [field, text] : {std::pair("max_runtime_minutes", &flags.max_runtime),
                                    std::pair("expected_runtime_minutes", &flags.expected_runtime)})
    if (*text) {
      const Result<int> minutes = parse_minutes(**text);
      if (!minutes) return minutes.error();
      job[field] = *minutes;
    }
  return ok_status();
}

Status set_pairs(Json& job, const Submit& flags) {
  const std::tuple<const char*, const char*, const std::vector<std::string>*, bool> kinds[] = {
      {"environment", "--env", &flags.environment, true},
      {"labels", "--label", &flags.labels, false},
      {"node_selector", "--node-selector", &flags.node_selector, false}};
  for (const auto& [field, flag, texts, inherit] : kinds) {
    const Result<Json> pairs = parse_pairs(flag, *texts, inherit);
    if (!pairs) return pairs.error();
    if (!pairs->empty()) job[field].update(*pairs);
  }
  return ok_status();
}

Status set_dependencies(Session& session, Json& job, const Submit& flags) {
  for (const auto* list : {&flags.depends_on, &flags.after_any})
    for (const std::string& text : *list) {
      const Result<std::string> id = session.job_id(text);
      if (!id) return id.error();
      job["depends_on"].push_back(
          list == &flags.depends_on ? Json(*id) : Json{{"job_id", *id}, {"condition", "any"}});
    }
  return ok_status();
}

void set_run(const Cli& cli, Json& job, const Submit& flags) {
  set(job, "name", flags.name);
  set(job, "image", flags.image);
  set(job, "working_dir", flags.working_dir);
  set(job, "user", flags.user);
  set(job, "script", flags.script);
  if (!cli.after_dashes.empty()) {
    job.erase("script");
    job.erase("args");
    job["command"] = cli.after_dashes;
  }
  if (flags.gang) job["gang_scheduling"] = true;
  if (flags.hold) job["held"] = true;
  if (flags.no_preemption) job["allow_preemption"] = false;
  if (flags.checkpoint_option->count() > 0) {
    const bool has_path = !flags.checkpoint.empty() && !flags.checkpoint.front().empty();
    job["checkpoint"] =
        has_path ? Json{{"enabled", true}, {"path", flags.checkpoint.front()}} : Json(true);
  }
}

// The flags that are given, over what a file says.
Status complete(const Cli& cli, Session& session, Json& job, const Submit& flags) {
  set_run(cli, job, flags);
  if (Status s = set_amounts(job, flags); !s) return s;
  if (Status s = set_pairs(job, flags); !s) return s;
  if (Status s = set_dependencies(session, job, flags); !s) return s;
  if (flags.file.empty()) {
    if (!job.contains("name")) job["name"] = "my-job";
    if (!job.contains("gpu_count") && !flags.nodes && !flags.gpus_per_node) job["gpu_count"] = 1;
    if (!job.contains("command") && !job.contains("script")) job["script"] = kUsualScript;
  }
  const std::string in_file = text_of(job, "tenant_id");
  const bool given = !cli.server.tenant.empty();
  const Result<std::string> tenant = session.tenant_id(given ? cli.server.tenant : in_file);
  if (!tenant) return tenant.error();
  job["tenant_id"] = *tenant;
  return ok_status();
}

// Waits for all of them; the first exit code that is not 0.
Result<int> wait_for(Session& session, const std::vector<std::string>& ids, const Submit& flags) {
  int code = 0;
  for (const std::string& id : ids) {
    const Result<Json> job = follow_job(session, id, flags.follow);
    if (!job) return job.error();
    const int own = exit_code_of(*job);
    fmt::print(stderr, "{} {}{}\n", id, text_of(*job, "state"),
               own == 0 ? "" : fmt::format(", exit code {}", own));
    if (code == 0) code = own;
  }
  return code;
}

Result<int> submit_one(const Cli& cli, Session& session, const Json& job, const Submit& flags) {
  const std::string key = flags.idempotency_key.empty() ? unique_key() : flags.idempotency_key;
  if (flags.dry_run) {
    const Result<Json> answer = session.send("POST", "/api/v1/jobs?dry_run=true", job, key);
    if (!answer) return answer.error();
    cli.show(*answer, [&] { return dry_run_words(*answer, cli.colour()); });
    return 0;
  }
  const Result<Json> answer = session.send("POST", "/api/v1/jobs", job, key);
  if (!answer) return answer.error();
  std::vector<std::string> ids;
  for (const Json& id : list_of(*answer, "job_ids")) ids.push_back(id.get<std::string>());
  if (ids.empty()) ids.push_back(text_of(*answer, "job_id"));
  cli.show(*answer, [&] {
    return fmt::format(
        "Job submitted successfully!\nJob ID: {}{}\nStatus: {}\n", ids.front(),
        ids.size() > 1 ? fmt::format(" and {} more of its array", ids.size() - 1) : "",
        text_of(*answer, "status"));
  });
  if (!flags.wait && !flags.follow) return 0;
  return wait_for(session, ids, flags);
}

Result<int> submit_many(const Cli& cli, Session& session, const std::vector<Json>& jobs,
                        const Submit& flags) {
  if (flags.dry_run) return invalid("--dry-run takes one job");
  const Result<Json> answer = session.send("POST", "/api/v1/jobs/batch", Json{{"jobs", jobs}});
  if (!answer) return answer.error();
  std::vector<std::string> ids;
  std::string words;
  const Json& results = list_of(*answer, "jobs");
  int wrong = 0;
  for (std::size_t i = 0; i < results.size() && i < jobs.size(); ++i) {
    const std::string id = text_of(results[i], "job_id");
    const std::string name = printable(text_of(jobs[i], "name"));
    if (!id.empty()) {
      ids.push_back(id);
      words += fmt::format("{}  {}\n", id, name);
      continue;
    }
    ++wrong;
    fmt::print(stderr, "gpu-cli: job {} ({}): {}\n", i + 1, name, text_of(results[i], "error"));
  }
  cli.show(*answer, [&] { return words; });
  if (wrong > 0) return 2;
  if (!flags.wait && !flags.follow) return 0;
  return wait_for(session, ids, flags);
}

Result<int> submit(Cli& cli, Session& session, const Submit& flags) {
  if (flags.script && !cli.after_dashes.empty())
    return invalid("give --script or a command after --, not both");
  std::vector<Json> jobs(1, Json::object());
  if (!flags.file.empty()) {
    const Result<std::string> text = read_input(flags.file);
    if (!text) return text.error();
    Result<std::vector<Json>> read = parse_jobs(*text);
    if (!read) return invalid(flags.file + ": " + read.error().message);
    jobs = std::move(*read);
  }
  for (Json& job : jobs)
    if (Status s = complete(cli, session, job, flags); !s) return s.error();
  if (jobs.size() == 1) return submit_one(cli, session, jobs.front(), flags);
  return submit_many(cli, session, jobs, flags);
}

void add_resources(CLI::App& command, Submit& flags) {
  command.add_option("--gpus", flags.gpus, "Number of GPUs (default: 1; 0: none)");
  command.add_option("--gpu-milli", flags.gpu_milli, "A part of each GPU, in thousandths");
  command.add_option("--gpu-model", flags.gpu_model, "Only GPUs of this model");
  command.add_option("--gpu-memory", flags.gpu_memory, "Memory of each GPU at least, such as 40G");
  command.add_option("--mig", flags.mig, "MIG profile, such as 1g.10gb; --gpus instances of it");
  command.add_option("--cpus", flags.cpus, "CPU cores (default: 0, no limit)");
  command.add_option("--memory", flags.memory, "Memory, such as 64G (default: no limit)");
  command.add_flag("--gang", flags.gang, "The GPUs may lie on several nodes; all start together");
  command.add_option("--nodes", flags.nodes, "A gang of one process on each of so many nodes");
  command.add_option("--gpus-per-node", flags.gpus_per_node, "GPUs of each process of a gang");
  command.add_option("--node-selector", flags.node_selector, "Only nodes with this label")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_what_runs(CLI::App& command, Submit& flags) {
  command.add_option("--name", flags.name, "Name of the job (default: my-job)");
  command.add_option("--script", flags.script,
                     "Shell script to run (default: nvidia-smi, where no command follows --)");
  command.add_option("--image", flags.image, "Container image (default: none, runs on the node)");
  command.add_option("--env", flags.environment, "Environment variable; KEY alone: as it is here")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--working-dir", flags.working_dir, "Folder to run in");
  command.add_option("--user", flags.user, "User to run as");
  flags.checkpoint_option =
      command
          .add_option("--checkpoint", flags.checkpoint,
                      "The job saves its work (under PATH) and may be stopped and resumed")
          ->type_name("[PATH]")
          ->expected(0, 1);
  command.add_option("--label", flags.labels, "Label to find it by")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_when(CLI::App& command, Submit& flags) {
  command.add_option("--priority", flags.priority,
                     "Higher goes first (default: the server's, 100)");
  command.add_option("--max-runtime", flags.max_runtime, "Stop it after this time: 90m, 2h, 1d");
  command.add_option("--expected-runtime", flags.expected_runtime, "How long it takes, probably");
  command.add_option("--depends-on", flags.depends_on, "Start after this job has completed")
      ->type_name("JOB")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--after-any", flags.after_any, "Start after this job has ended in any way")
      ->type_name("JOB")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--array", flags.array,
                     "So many jobs alike; GPU_SCHEDULER_ARRAY_INDEX tells which one it is");
  command.add_flag("--hold", flags.hold, "Do not start it before `gpu-cli release`");
  command.add_flag("--no-preemption", flags.no_preemption, "Never stop it for another job");
}

}  // namespace

void add_submit(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Submit>();
  CLI::App* command = app.add_subcommand(
      "submit", "Submit a job: gpu-cli submit --gpus 2 [...] -- python train.py");
  add_what_runs(*command, *flags);
  add_resources(*command, *flags);
  add_when(*command, *flags);
  command->add_option("-f,--file", flags->file,
                      "Whole jobs from a JSON or YAML file (-: stdin); flags go over it");
  command->add_option("--idempotency-key", flags->idempotency_key,
                      "The same key submits only once (default: a new one)");
  command->add_flag("--dry-run", flags->dry_run, "Only tell when and where it would start");
  command->add_flag("--wait", flags->wait, "Wait until it has ended; exit with its code");
  command->add_flag("--follow", flags->follow, "Wait, and show its log meanwhile");
  on_chosen(*command, cli, flags, submit);
}

}  // namespace gs::cli
