#include "sim/wrong_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.hpp"

namespace gs {
namespace {

// The command that the words which we did understand have led to.
const CLI::App* last_understood(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App* command) {
         return !command->get_group().empty();  // what has no group is not for people
       }))
    names.push_back(one->get_name());
  return names;
}

std::string wrong_word(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return fmt::format("{} has no option {}", app.get_name(), word);
  const std::vector<std::string> commands = commands_of(app);
  const std::string_view meant = nearest_word(word, commands);
  const std::string hint = meant.empty() ? fmt::format("; there are {}", fmt::join(commands, ", "))
                                         : fmt::format("; did you mean {}?", meant);
  return fmt::format("{} has no command '{}'{}", app.get_name(), word, hint);
}

}  // namespace

std::string describe_wrong_command(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* last = last_understood(app);
  if (error.get_name() != "RequiredError" || last->get_require_subcommand_min() == 0)
    return CLI::FailureMessage::simple(app, error);
  const std::vector<std::string> rest = last->remaining();
  return (rest.empty() ? fmt::format("{} needs a command: one of {}", last->get_name(),
                                     fmt::join(commands_of(*last), ", "))
                       : wrong_word(*last, rest.front())) +
         "\nRun with --help for more information.\n";
}

}  // namespace gs
