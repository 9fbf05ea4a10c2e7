// gpu-cli: jobs, tenants and machines of a gpu-scheduler, from the command line.
#include <csignal>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "apps/gpu_cli/cli.hpp"
#include "sim/ask.hpp"
#include "sim/completion.hpp"
#include "sim/wrong_command.hpp"

namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 failed; 2 wrong arguments; 3 not found; 4 conflict; 5 over quota;\n"
    "            6 not allowed; 7 server not reachable or busy; with --wait: the job's own.\n"
    "Environment: GPU_SCHEDULER_URL, GPU_SCHEDULER_API_KEY, GPU_SCHEDULER_TENANT_ID,\n"
    "             GPU_SCHEDULER_CA_FILE, NO_COLOR. `gpu-cli login` stores them in a file.";

void add_shared_flags(CLI::App& app, gs::cli::Cli& cli) {
  app.add_option("--server,--api-url", cli.server.server,
                 "Where the server is (default: http://localhost:8080)")
      ->type_name("URL");
  app.add_option("--api-key", cli.server.api_key, "Who we are: an API key or a token")
      ->type_name("KEY");
  app.add_option("--ca-file", cli.server.ca_file, "Certificates to trust, for https")
      ->type_name("FILE");
  app.add_option("--timeout", cli.server.timeout, "How long to wait for an answer (default: 30s)")
      ->type_name("TIME");
  app.add_option("--tenant-id", cli.server.tenant,
                 "The tenant, by id or name (default: the only one there is)")
      ->type_name("TENANT");
  app.add_option("-o,--output", cli.output, "table, wide, json or yaml (default: table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}));
  app.add_flag("--no-color", cli.no_color, "No colours, not even on a terminal");
}

// What follows `--` is the job's command and none of our business.
std::vector<std::string> split_command(int argc, char** argv, gs::cli::Cli& cli) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const auto dashes = std::find(args.begin(), args.end(), "--");
  if (std::find(args.begin(), dashes, "submit") != dashes && dashes != args.end()) {
    cli.after_dashes.assign(dashes + 1, args.end());
    args.erase(dashes, args.end());
  }
  std::reverse(args.begin(), args.end());  // as CLI11 wants it
  return args;
}

void add_commands(CLI::App& app, gs::cli::Cli& cli, int& exit_code) {
  gs::cli::add_submit(app, cli);
  gs::cli::add_jobs(app, cli);
  gs::cli::add_why_online(app, cli);
  gs::cli::add_logs(app, cli);
  gs::cli::add_job_changes(app, cli);
  gs::cli::add_cluster(app, cli);
  gs::cli::add_top(app, cli);
  gs::cli::add_events(app, cli);
  gs::cli::add_tenants(app, cli);
  gs::cli::add_usage(app, cli);
  gs::cli::add_login(app, cli);
  CLI::App* offline =
      app.add_subcommand("offline", "Ask about clusters that scenario files describe; no server");
  offline->require_subcommand(1);
  gs::add_why(*offline, exit_code);
  gs::add_dry_run(*offline, exit_code);
  gs::add_completion(app, exit_code);
  gs::cli::add_man(app, cli);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that has seen enough (`| head`) is no error.
  std::signal(SIGPIPE, [](int) { _exit(0); });
  CLI::App app{"Submits jobs to a gpu-scheduler, and shows and changes what is there", "gpu-cli"};
  app.set_version_flag("--version", gs::version_line("gpu-cli"));
  app.require_subcommand(1);
  app.failure_message(gs::describe_wrong_command);
  app.fallthrough();
  app.footer(kFooter);
  gs::cli::Cli cli;
  int exit_code = 0;
  add_shared_flags(app, cli);
  add_commands(app, cli, exit_code);
  try {
    app.parse(split_command(argc, argv, cli));
    return exit_code != 0 ? exit_code : cli.run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu-cli: {}\n", error.what());
    return 1;
  }
}
