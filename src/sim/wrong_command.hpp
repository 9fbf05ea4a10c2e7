// What a person is told about a command line with a command or an option that is none of ours.
#pragma once

#include <string>

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace gs {

// For CLI::App::failure_message: names the word that is no command or option, the one that may
// have been meant, or the commands that there are; any other mistake in CLI11's own words.
std::string describe_wrong_command(const CLI::App* app, const CLI::Error& error);

}  // namespace gs
