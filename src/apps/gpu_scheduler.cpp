// gpu-scheduler: one binary, one subcommand per world that drives the engine. Under another name it
// is the subcommand that the name stands for (own_name.hpp).
#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "agent/agent.hpp"
#include "agent/supervisor.hpp"
#include "apps/gpu_scheduler/kube.hpp"
#include "apps/gpu_scheduler/kube_agent.hpp"
#include "apps/gpu_scheduler/own_name.hpp"
#include "apps/gpu_scheduler/serve.hpp"
#include "apps/gpu_scheduler/webhook.hpp"
#include "sim/completion.hpp"
#include "sim/conformance.hpp"
#include "sim/demo.hpp"
#include "sim/faults.hpp"
#include "sim/openb.hpp"
#include "sim/scenario_run.hpp"
#include "sim/topo.hpp"
#include "sim/wrong_command.hpp"

namespace {

// As CLI11 takes them: the last one first.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> subcommands;
  for (const CLI::App* one : app.get_subcommands({})) subcommands.push_back(one->get_name());
  std::vector<std::string> arguments = gs::arguments_by_name(
      argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc}, subcommands);
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Schedules GPU jobs: one engine for one machine, a cluster, or a simulation",
               "gpu-scheduler"};
  app.set_version_flag("--version", gs::version_line("gpu-scheduler"));
  app.require_subcommand(1);
  app.failure_message(gs::describe_wrong_command);
  int exit_code = 0;

  CLI::App* sim = app.add_subcommand("sim", "Run the engine in a simulated world");
  sim->require_subcommand(1);
  gs::add_demo(*sim, exit_code);
  gs::scenario::add_run(*sim, exit_code);
  gs::add_conformance(*sim, exit_code);
  gs::add_openb(*sim, exit_code);
  gs::add_topo(*sim, exit_code);
  gs::add_faults(*sim, exit_code);
  gs::add_serve(app, exit_code);
  gs::add_config(app, exit_code);
  gs::add_key(app, exit_code);
  gs::add_kube(app, exit_code);
  gs::add_agent(app, exit_code, gs::run_kube_agent);
  gs::add_webhook(app, exit_code);
  gs::add_run_task(app, exit_code);
  gs::add_completion(app, exit_code);

  try {
    app.parse(arguments_of(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu-scheduler: {}\n", error.what());
    return 2;
  }
  return exit_code;
}
