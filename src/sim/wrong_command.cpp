#include "sim/wrong_command.hpp"

#include <algorithm>

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

// "--seed" and the like that may stand behind this command: its own, and those of the commands
// above it.
std::vector<std::string> options_of(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent())
    for (const CLI::Option* one : app->get_options())
      for (const std::string& name : one->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string wrong_option(const CLI::App& app, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  const std::vector<std::string> options = options_of(&app);
  const std::string_view meant = nearest_word(option, options);
  const std::string hint = meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
  return fmt::format("{} has no option {}{}", app.get_name(), option, hint);
}

std::string wrong_word(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return wrong_option(app, word);
  const std::vector<std::string> commands = commands_of(app);
  if (commands.empty()) return fmt::format("{} does not take '{}'", app.get_name(), word);
  const std::string_view meant = nearest_word(word, commands);
  const std::string hint = meant.empty() ? fmt::format("; there are {}", fmt::join(commands, ", "))
                                         : fmt::format("; did you mean {}?", meant);
  return fmt::format("{} has no command '{}'{}", app.get_name(), word, hint);
}

std::string_view described(const std::string& type) {
  if (type == "INT") return "a whole number";
  if (type == "UINT") return "a whole number of 0 or more";
  if (type == "FLOAT") return "a number";
  return "another value";
}

// "--gpus takes a whole number, not 'four'"; nothing where the error is about another thing.
std::string wrong_value(const CLI::App* app, const CLI::Error& error) {
  for (; app != nullptr; app = app->get_parent())
    for (const CLI::Option* one : app->get_options()) {
      const std::vector<std::string> given = one->results();
      const CLI::ConversionError told(one->get_name(), given);
      if (given.empty() || std::string_view(error.what()) != told.what()) continue;
      return fmt::format("{} takes {}, not '{}'", one->get_name(), described(one->get_type_name()),
                         fmt::join(given, " "));
    }
  return {};
}

// The word to speak of: an option that is wrong leaves its value over too.
const std::string& first_wrong(const std::vector<std::string>& rest) {
  const auto option = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
    return word.size() > 1 && word.starts_with('-');
  });
  return option == rest.end() ? rest.front() : *option;
}

}  // namespace

std::string describe_wrong_command(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* last = last_understood(app);
  const std::vector<std::string> rest = app->remaining(true);
  // By the code: in place of its name, an error about words that are left over has the command's.
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool missing = code == CLI::ExitCodes::RequiredError;
  std::string text;
  if (!rest.empty() && (missing || code == CLI::ExitCodes::ExtrasError))
    text = wrong_word(*last, first_wrong(rest));
  else if (missing && last->get_require_subcommand_min() > 0)
    text = fmt::format("{} needs a command: one of {}", last->get_name(),
                       fmt::join(commands_of(*last), ", "));
  else if (code == CLI::ExitCodes::ConversionError)
    text = wrong_value(last, error);
  if (text.empty()) return CLI::FailureMessage::simple(app, error);
  return text + "\nRun with --help for more information.\n";
}

}  // namespace gs
