// man: the page for man(1), made from the commands that there are.
#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"
#include "base/version.hpp"

namespace gs::cli {
namespace {

// Text in roff: backslashes and dashes stand for themselves, no line begins with a dot.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string option_names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  const bool takes_value = option.get_items_expected_max() > 0;
  return names + (takes_value ? " " + option.get_type_name() : "");
}

std::string options_text(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (!option->nonpositional() || option->check_name("--help")) continue;
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(option_names(*option)),
                       roff(option->get_description()));
  }
  return out;
}

std::string positionals_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; }))
    if (option->get_positional())
      out += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
  return out;
}

void write_commands(const CLI::App& app, const std::string& path, std::string& out) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    std::string aliases;
    for (const std::string& alias : command->get_aliases()) aliases += ", " + alias;
    out += fmt::format(".SS \"{}{}\"\n{}\n", roff(name + positionals_of(*command)), roff(aliases),
                       roff(command->get_description()));
    out += options_text(*command);
    write_commands(*command, name, out);
  }
}

std::string man_page(const CLI::App& app) {
  std::string out =
      fmt::format(".TH GPU\\-CLI 1 \"\" \"gpu-cli {}\" \"User Commands\"\n", kVersion);
  out += ".SH NAME\ngpu\\-cli \\- " + roff(app.get_description()) + "\n";
  out += ".SH SYNOPSIS\n.B gpu\\-cli\n[OPTIONS] COMMAND [ARGUMENTS]\n";
  out += ".SH OPTIONS\nThey may stand before or after the command.\n" + options_text(app);
  out += ".SH COMMANDS\n";
  write_commands(app, "", out);
  out += ".SH \"EXIT CODES AND ENVIRONMENT\"\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
  out +=
      ".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/gpu\\-scheduler/cli.yaml\n"
      "What login has stored; only its owner may read it.\n";
  return out;
}

}  // namespace

void add_man(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page: gpu-cli man | man -l -");
  command->callback([&app, &cli] {
    cli.local = [&app]() -> Result<int> {
      put(man_page(app));
      return 0;
    };
  });
}

}  // namespace gs::cli
