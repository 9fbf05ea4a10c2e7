// events: what has happened, and what happens.
#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

struct Events {
  bool follow = false;
  std::string job, type;
  std::optional<int> limit;
};

Paint paint_of(const std::string& type) {
  if (type.ends_with("failed") || type.ends_with("lost") || type.ends_with("offline"))
    return Paint::Red;
  if (type.ends_with("preempted") || type.ends_with("requeued") || type.starts_with("node."))
    return Paint::Yellow;
  return type == "job.running" || type == "job.completed" ? Paint::Green : Paint::Plain;
}

std::string event_line(const Cli& cli, const Json& event) {
  const auto time = time_of(event, "time");
  const std::string type = text_of(event, "type");
  const std::string job = text_of(event, "job_id");
  const std::string node = text_of(event, "node");
  std::string subject = job.empty() ? node : job;
  if (cli.is_wide() && !job.empty() && !node.empty()) subject += " on " + node;
  return fmt::format("{}  {}  {:<23}  {}\n", time ? date_text(*time) : std::string(19, ' '),
                     paint(fmt::format("{:<15}", type), paint_of(type), cli.colour()),
                     printable(subject), printable(text_of(event, "message")));
}

// A line each in JSON, a document each in YAML: streams have no end.
void show_event(const Cli& cli, const std::string& data) {
  const Json event = Json::parse(data, nullptr, false);
  if (event.is_discarded()) return;
  if (cli.output == "json")
    put(event.dump() + "\n");
  else if (cli.output == "yaml")
    put("---\n"), cli.show(event, {});
  else
    put(event_line(cli, event));
}

// Server-sent events: takes whole ones out of `buffer`.
void take_events(const Cli& cli, std::string& buffer) {
  for (std::size_t end; (end = buffer.find("\n\n")) != std::string::npos;) {
    const std::string block = buffer.substr(0, end + 1);
    buffer.erase(0, end + 2);
    for (std::size_t at = 0; at < block.size();) {
      const std::size_t stop = block.find('\n', at);
      const std::string line = block.substr(at, stop - at);
      if (line.starts_with("data:")) show_event(cli, line.substr(line.find_first_not_of(' ', 5)));
      at = stop + 1;
    }
  }
}

Result<int> events(Cli& cli, Session& session, const Events& flags) {
  std::string job = flags.job;
  if (!job.empty()) {
    const Result<std::string> id = session.job_id(job);
    if (!id) return id.error();
    job = *id;
  }
  std::string tenant = cli.server.tenant;
  if (!tenant.empty()) {
    const Result<std::string> id = session.tenant_id(tenant);
    if (!id) return id.error();
    tenant = *id;
  }
  const std::string target =
      "/api/v1/events" + query_text({{"job_id", job}, {"tenant_id", tenant}, {"type", flags.type}});
  if (flags.follow) {
    std::string buffer;
    const Duration idle = seconds(60);  // the server says every 15 seconds that it is still there
    const Status s = session.stream(
        target, "text/event-stream",
        [&](std::string_view piece) {
          buffer += piece;
          take_events(cli, buffer);
          return true;
        },
        idle);
    if (!s) return s.error();
    return 0;
  }
  const std::string limit = std::to_string(flags.limit.value_or(1000));
  const std::string more = target.find('?') == std::string::npos ? "?" : "&";
  const Result<Json> answer = session.get(target + more + "limit=" + limit);
  if (!answer) return answer.error();
  cli.show(*answer, [&] {
    std::string out;
    for (const Json& event : list_of(*answer, "events")) out += event_line(cli, event);
    return out.empty() ? std::string("no events\n") : out;
  });
  return 0;
}

}  // namespace

void add_events(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Events>();
  CLI::App* command = app.add_subcommand("events", "What has happened to jobs and nodes");
  command->add_flag("-f,--follow", flags->follow, "From now on, as it happens");
  command->add_option("--job", flags->job, "Only about this job")->type_name("JOB");
  command->add_option("--type", flags->type, "Only what begins so: job, job.failed, node");
  command->add_option("--limit", flags->limit, "At most so many (default: 1000)")
      ->check(CLI::Range(1, 10'000));
  on_chosen(*command, cli, flags, events);
}

}  // namespace gs::cli
