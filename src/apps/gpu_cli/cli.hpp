// What all commands share: the flags that go before or after any of them, the session with the
// server, and how answers are shown. A command is chosen while the arguments are read and run when
// all of them are known to be right.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/gpu_cli/session.hpp"
#include "apps/gpu_cli/spans.hpp"
#include "apps/gpu_cli/table.hpp"

namespace gs::cli {

class Cli {
 public:
  ServerFlags server;
  std::string output = "table";
  bool no_color = false;
  std::vector<std::string> after_dashes;  // of `submit ... -- command`

  using Command = std::function<Result<int>(Session&)>;
  Command command;                     // with a server
  std::function<Result<int>()> local;  // without one

  bool wants_data() const { return output == "json" || output == "yaml"; }
  bool is_wide() const { return output == "wide"; }
  bool colour() const { return !no_color && wants_colour(); }

  // Runs what was chosen; errors are told on stderr. The exit code.
  int run();
  // The data as they are, or the text that `words` makes of them, as the user wants it.
  void show(const Json& data, const std::function<std::string()>& words) const;

 private:
  int tell(const Error& error) const;
};

void put(std::string_view text);  // to stdout, at once

// Reading answers: what is not there is empty.
std::string text_of(const Json& object, const char* field);
double number_of(const Json& object, const char* field);
std::optional<Instant> time_of(const Json& object, const char* field);
const Json& list_of(const Json& object, const char* field);

// Words for tables.
std::string when(const Cli& cli, const Json& object, const char* field, Instant now);
Cell state_cell(const Json& job);
std::string plural(std::int64_t count, std::string_view noun);
std::string number_text(double value);  // 4, 0.5, 12.25
std::string memory_text(double mib);
std::string gpus_text(const Json& job);  // what a job asks for                        // 80 GiB
std::string numbers_text(const std::vector<int>& numbers);  // "0-3,7"

// A command without a name of its own for its flags: `chosen` runs with the flags as they are.
template <typename Flags>
void on_chosen(CLI::App& command, Cli& cli, std::shared_ptr<Flags> flags,
               Result<int> (*chosen)(Cli&, Session&, const Flags&)) {
  command.callback([&cli, flags, chosen] {
    cli.command = [&cli, flags, chosen](Session& session) { return chosen(cli, session, *flags); };
  });
}

void add_submit(CLI::App& app, Cli& cli);
void add_jobs(CLI::App& app, Cli& cli);
void add_job_changes(CLI::App& app, Cli& cli);
void add_why_online(CLI::App& app, Cli& cli);
void add_logs(CLI::App& app, Cli& cli);
void add_tenants(CLI::App& app, Cli& cli);
void add_usage(CLI::App& app, Cli& cli);
void add_cluster(CLI::App& app, Cli& cli);
void add_top(CLI::App& app, Cli& cli);
void add_events(CLI::App& app, Cli& cli);
void add_login(CLI::App& app, Cli& cli);
void add_man(CLI::App& app, Cli& cli);

// Streams a job's log to stdout as it grows, through restarts, until the job has ended; its last
// state.
Result<Json> follow_job(Session& session, const std::string& id, bool with_log);
// As a shell would see it: the job's own code, 128 + its signal, 1 where it has none.
int exit_code_of(const Json& job);

}  // namespace gs::cli
