#include "sim/completion.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/version.hpp"

namespace gs {
namespace {

struct Entry {
  std::string word;
  std::string help;
};

// A command by its path ("sim run"), and what may follow it.
struct Place {
  std::string path;
  std::vector<Entry> entries;
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == ':' || c == '`'; });
  return text;
}

void walk(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place{path, {}};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    place.entries.push_back({command->get_name(), one_line(command->get_description())});
    walk(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), places);
  }
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; }))
    for (const std::string& name : option->get_lnames())
      place.entries.push_back({"--" + name, one_line(option->get_description())});
  places.push_back(std::move(place));
}

std::string identifier(std::string program) {
  std::replace(program.begin(), program.end(), '-', '_');
  return "_" + program;
}

// The words without a dash before the cursor are the path, as far as they name commands.
std::string bash(const std::string& program, const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    std::string words;
    for (const Entry& entry : place.entries) words += (words.empty() ? "" : " ") + entry.word;
    cases += fmt::format("    '{}') words='{}' ;;\n", place.path, words);
  }
  return fmt::format(R"(# bash completion for {0}
{1}() {{
  local path='' words='' word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*|*/*|*.*) ;; *) path="${{path:+$path }}$word" ;; esac
  done
  case "$path" in
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F {1} {0}
)",
                     program, identifier(program), cases);
}

std::string zsh(const std::string& program, const std::vector<Place>& places) {
  std::string cases;
  for (const Place& place : places) {
    std::string words;
    for (const Entry& entry : place.entries)
      words += fmt::format(" '{}:{}'", entry.word, entry.help);
    cases += fmt::format("    '{}') choices=({} ) ;;\n", place.path, words);
  }
  return fmt::format(R"(#compdef {0}
{1}() {{
  local place='' word
  local -a choices
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$word" in -*|*/*|*.*) ;; *) place="${{place:+$place }}$word" ;; esac
  done
  case "$place" in
{2}  esac
  _describe '{0}' choices || _files
}}
compdef {1} {0}
)",
                     program, identifier(program), cases);
}

std::string fish(const std::string& program, const std::vector<Place>& places) {
  const std::string test = "_" + identifier(program) + "_at";
  std::string lines;
  for (const Place& place : places)
    for (const Entry& entry : place.entries) {
      const bool option = entry.word.rfind("--", 0) == 0;
      lines +=
          fmt::format("complete -c {} -n '{} \"{}\"' {} {} -d '{}'\n", program, test, place.path,
                      option ? "-l" : "-a", option ? entry.word.substr(2) : entry.word, entry.help);
    }
  return fmt::format(R"(# fish completion for {0}
function {1}
  set -l path
  for word in (commandline -opc)[2..-1]
    string match -qr '^-|/|\.' -- $word; or set -a path $word
  end
  test "$path" = "$argv[1]"
end
{2})",
                     program, test, lines);
}

}  // namespace

std::string version_line(const std::string& program) {
  return fmt::format("{} {}", program, kVersion);
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  walk(app, "", places);
  const std::string& program = app.get_name();
  if (shell == "zsh") return zsh(program, places);
  return shell == "fish" ? fish(program, places) : bash(program, places);
}

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &exit_code] {
    fmt::print("{}", completion_script(app, *shell));
    exit_code = 0;
  });
}

}  // namespace gs
