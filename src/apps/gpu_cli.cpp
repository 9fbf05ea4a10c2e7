// gpu-cli: the companion of gpu-scheduler. Without a service to talk to it answers from scenario
// files: it plays the cluster that a file describes and asks the engine.
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "sim/ask.hpp"
#include "sim/completion.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Asks the scheduling engine about clusters described in scenario files (offline)",
               "gpu-cli"};
  app.set_version_flag("--version", gs::version_line("gpu-cli"));
  app.require_subcommand(1);
  int exit_code = 0;
  gs::add_why(app, exit_code);
  gs::add_dry_run(app, exit_code);
  gs::add_completion(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu-cli: {}\n", error.what());
    return 2;
  }
  return exit_code;
}
