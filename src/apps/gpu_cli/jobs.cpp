// jobs, get: what there is.
#include <chrono>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

struct Jobs {
  std::vector<std::string> states, labels;
  std::string name, sort, array;
  std::optional<int> limit;
  bool all = false, watch = false;
};

constexpr int kPage = 1000;

std::string target_of(const Cli& cli, Session& session, const Jobs& flags, int limit,
                      const std::string& cursor) {
  std::string tenant = cli.server.tenant;
  if (!tenant.empty())
    if (const Result<std::string> id = session.tenant_id(tenant)) tenant = *id;
  std::string target =
      "/api/v1/jobs" + query_text({{"limit", std::to_string(limit)},
                                   {"tenant_id", tenant},
                                   {"state", fmt::format("{}", fmt::join(flags.states, ","))},
                                   {"name", flags.name},
                                   {"array_id", flags.array},
                                   {"sort", flags.sort},
                                   {"cursor", cursor}});
  for (const std::string& label : flags.labels) {
    const std::string one = query_text({{"label", label}});
    target += "&" + one.substr(1);
  }
  return target;
}

// As many as are wanted, page after page.
Result<Json> list(const Cli& cli, Session& session, const Jobs& flags) {
  const int wanted = flags.limit.value_or(flags.all ? 0 : 50);  // 0: all
  Json out;
  std::string cursor;
  for (;;) {
    const int have = out.is_null() ? 0 : static_cast<int>(out["jobs"].size());
    const int limit = wanted == 0 ? kPage : std::min(kPage, wanted - have);
    Result<Json> page = session.get(target_of(cli, session, flags, limit, cursor));
    if (!page) return page.error();
    cursor = text_of(*page, "next_cursor");
    if (out.is_null()) {
      out = std::move(*page);
    } else {
      for (Json& job : (*page)["jobs"]) out["jobs"].push_back(std::move(job));
      out["next_cursor"] = cursor;
    }
    const int now = static_cast<int>(out["jobs"].size());
    if (cursor.empty() || (wanted > 0 && now >= wanted) || now == have) return out;
  }
}

// Names are for people; where they cannot be had, ids do.
std::map<std::string, std::string> tenant_names(Session& session) {
  std::map<std::string, std::string> names;
  if (const Result<Json> answer = session.get("/api/v1/tenants"))
    for (const Json& tenant : list_of(*answer, "tenants"))
      names[text_of(tenant, "id")] = text_of(tenant, "name");
  return names;
}

std::string run_time(const Json& job, Instant now) {
  const auto started = time_of(job, "started_at");
  if (!started) return "-";
  const std::string state = text_of(job, "state");
  if (state == "pending" || state == "preempted") return "-";
  return short_span(time_of(job, "completed_at").value_or(now) - *started);
}

std::string nodes_text(const Json& job) {
  std::string out;
  for (const Json& node : list_of(job, "allocated_nodes"))
    out += (out.empty() ? "" : ",") + node.get<std::string>();
  return out;
}

Table job_table(const Cli& cli, const Json& jobs,
                const std::map<std::string, std::string>& tenants) {
  const Instant now = wall_clock();
  std::vector<std::string> titles = {"JOB ID", "NAME",      "TENANT", "STATE", ">GPUS",
                                     ">PRIO",  "SUBMITTED", ">RAN",   "NODE"};
  if (cli.is_wide()) titles.insert(titles.end(), {"STARTED", "ENDED", ">TRY", ">EXIT", "MESSAGE"});
  Table table(titles);
  for (const Json& job : jobs) {
    const std::string tenant = text_of(job, "tenant_id");
    const auto known = tenants.find(tenant);
    std::vector<Cell> row = {text_of(job, "id"),
                             shortened(text_of(job, "name"), cli.is_wide() ? 253 : 32),
                             known == tenants.end() ? tenant : known->second,
                             state_cell(job),
                             gpus_text(job),
                             number_text(number_of(job, "priority")),
                             when(cli, job, "submitted_at", now),
                             run_time(job, now),
                             nodes_text(job)};
    if (cli.is_wide()) {
      row.emplace_back(when(cli, job, "started_at", now));
      row.emplace_back(when(cli, job, "completed_at", now));
      row.emplace_back(number_text(number_of(job, "attempt")));
      const bool has_code = job.contains("exit_code") && job["exit_code"].is_number();
      row.emplace_back(has_code ? number_text(number_of(job, "exit_code")) : "-");
      row.emplace_back(text_of(job, "message"));
    }
    table.add(std::move(row));
  }
  return table;
}

std::string jobs_words(const Cli& cli, Session& session, const Json& answer) {
  const Json& jobs = list_of(answer, "jobs");
  if (jobs.empty()) return "no jobs\n";
  std::string out = job_table(cli, jobs, tenant_names(session)).text(cli.colour());
  const auto total = static_cast<std::int64_t>(number_of(answer, "total"));
  const bool more = total > static_cast<std::int64_t>(jobs.size());
  if (more)
    out += paint(fmt::format("{} of {}{} jobs; --all shows all of them", jobs.size(),
                             answer.value("total_is_exact", true) ? "" : "at least ", total),
                 Paint::Dim, cli.colour()) +
           "\n";
  return out;
}

Result<int> jobs(Cli& cli, Session& session, const Jobs& flags) {
  for (;;) {
    const Result<Json> answer = list(cli, session, flags);
    if (!answer) return answer.error();
    const bool on_terminal = isatty(STDOUT_FILENO) != 0;
    if (flags.watch && on_terminal) put("\033[H\033[2J");
    cli.show(*answer, [&] { return jobs_words(cli, session, *answer); });
    if (!flags.watch) return 0;
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
}

// ---------------------------------------------------------------- get

struct One {
  std::string job;
};

std::string joined(const Json& words) {
  std::string out;
  for (const Json& word : words) out += (out.empty() ? "" : " ") + word.get<std::string>();
  return out;
}

std::string pairs_text(const Json& job, const char* field) {
  std::string out;
  if (job.contains(field))
    for (const auto& [key, value] : job[field].items())
      out += (out.empty() ? "" : " ") + key + "=" +
             (value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

std::string place_of(const Json& job) {
  std::string out;
  for (const Json& process : list_of(job, "processes")) {
    std::vector<int> gpus;
    for (const Json& gpu : list_of(process, "gpus")) gpus.push_back(gpu.get<int>());
    out += (out.empty() ? "" : ", ") + text_of(process, "node");
    if (!gpus.empty())
      out += fmt::format(" {} {}", gpus.size() == 1 ? "GPU" : "GPUs", numbers_text(gpus));
  }
  return out;
}

std::string moment(const Json& job, const char* field, Instant now) {
  const auto time = time_of(job, field);
  return time ? fmt::format("{} ({})", date_text(*time), ago(*time, now)) : "";
}

std::string job_words(const Cli& cli, const Json& job) {
  const Instant now = wall_clock();
  std::string out;
  const auto line = [&](const char* title, const std::string& text, Paint with = Paint::Plain) {
    if (!text.empty())
      out += fmt::format("{:<13}{}\n", std::string(title) + ":",
                         paint(printable(text), with, cli.colour()));
  };
  const Cell state = state_cell(job);
  line("Job ID", text_of(job, "id"));
  line("Name", text_of(job, "name"));
  line("Tenant", text_of(job, "tenant_id"));
  line("State", state.text, state.paint);
  line("Priority", number_text(number_of(job, "priority")));
  line("GPUs",
       gpus_text(job) + (text_of(job, "gpu_model").empty() ? "" : " " + text_of(job, "gpu_model")));
  if (number_of(job, "cpu_cores") > 0) line("CPU cores", number_text(number_of(job, "cpu_cores")));
  if (number_of(job, "memory_mb") > 0) line("Memory", memory_text(number_of(job, "memory_mb")));
  line("Command", joined(list_of(job, "command")));
  line("Arguments", joined(list_of(job, "args")));
  line("Script", shortened(printable(text_of(job, "script")), 200));
  line("Image", text_of(job, "image"));
  line("Environment", pairs_text(job, "environment"));
  line("Labels", pairs_text(job, "labels"));
  line("Node", place_of(job));
  line("Submitted", moment(job, "submitted_at", now));
  line("Started", moment(job, "started_at", now));
  line("Ended", moment(job, "completed_at", now));
  line("Ran", run_time(job, now) == "-" ? "" : run_time(job, now));
  if (number_of(job, "attempt") > 1) line("Attempt", number_text(number_of(job, "attempt")));
  if (job.contains("exit_code") && job["exit_code"].is_number())
    line("Exit code", number_text(number_of(job, "exit_code")));
  line("Message", text_of(job, "message"));
  return out;
}

Result<int> get(Cli& cli, Session& session, const One& flags) {
  const Result<std::string> id = session.job_id(flags.job);
  if (!id) return id.error();
  const Result<Json> job = session.get(path_of("jobs", *id));
  if (!job) return job.error();
  cli.show(*job, [&] { return job_words(cli, *job); });
  return 0;
}

}  // namespace

void add_jobs(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Jobs>();
  CLI::App* command = app.add_subcommand("jobs", "List jobs, latest first")->alias("list");
  command
      ->add_option("--state", flags->states,
                   "pending, scheduled, running, completed, failed, cancelled, preempted")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--name", flags->name, "Of this name; a * at its end stands for anything");
  command->add_option("--label", flags->labels, "With this label")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--array", flags->array, "Of the array with this id")->type_name("JOB");
  command->add_option("--sort", flags->sort, "submitted_at, priority or name; -name: turned round");
  command->add_option("--limit", flags->limit, "At most so many (default: 50)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--all", flags->all, "All of them");
  command->add_flag("--watch", flags->watch, "Show them again every two seconds");
  on_chosen(*command, cli, flags, jobs);

  auto one = std::make_shared<One>();
  CLI::App* single = app.add_subcommand("get", "Everything about one job");
  single->add_option("job", one->job, "Id or name of the job")->required();
  on_chosen(*single, cli, one, get);
}

}  // namespace gs::cli
