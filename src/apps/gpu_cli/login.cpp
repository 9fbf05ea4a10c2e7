// login, logout: which server, and who we are to it, for the commands to come.
#include <filesystem>
#include <iostream>

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

struct Nothing {};

// A line from the terminal that is not shown, or from a pipe.
std::string read_secret_line(const std::string& prompt) {
  termios before{};
  const bool on_terminal = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before) == 0;
  if (on_terminal) {
    fmt::print(stderr, "{}", prompt);
    termios quiet = before;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  }
  std::string line;
  std::getline(std::cin, line);
  if (on_terminal) {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fmt::print(stderr, "\n");
  }
  return line;
}

// Asks as those would who nobody knows: does this server want to know who calls?
Result<bool> wants_key(Session& session) {
  const Result<Json> answer = session.get("/api/v1/tenants");
  if (answer) return false;
  if (answer.error().code == ErrorCode::Unauthenticated) return true;
  return answer.error();
}

Result<int> login(Cli& cli, Session& session, const Nothing&) {
  Access access = session.access();
  if (const Result<Json> health = session.get("/health"); !health) return health.error();
  if (access.api_key.empty()) {
    const Result<bool> wanted = wants_key(session);
    if (!wanted) return wanted.error();
    if (*wanted) access.api_key = read_secret_line("API key: ");
    if (*wanted && access.api_key.empty()) return invalid("no key given");
  }
  Session checked(access);
  const Result<Json> tenants = checked.get("/api/v1/tenants");
  if (!tenants) return tenants.error();
  std::string tenant = cli.server.tenant;
  if (!tenant.empty()) {
    const Result<std::string> id = checked.tenant_id(tenant);
    if (!id) return id.error();
    tenant = *id;
  }
  ConfigFile config{access.server.text(), access.api_key, access.ca_file, tenant};
  if (!config.ca_file.empty()) config.ca_file = std::filesystem::absolute(config.ca_file);
  const std::string path = config_path();
  if (Status s = save_config(path, config); !s) return s.error();
  put(fmt::format("logged in to {} (stored in {})\n", config.server, path));
  return 0;
}

Result<int> logout() {
  const std::string path = config_path();
  std::error_code error;
  const bool removed = !path.empty() && std::filesystem::remove(path, error);
  if (error) return Error{ErrorCode::Internal, "cannot remove " + path + ": " + error.message()};
  put(removed ? "logged out: " + path + " is removed\n" : "nothing was stored\n");
  return 0;
}

}  // namespace

void add_login(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "login", "Store --server, --api-key, --ca-file and --tenant-id, after checking them");
  on_chosen(*command, cli, std::make_shared<Nothing>(), login);
  command = app.add_subcommand("logout", "Forget what login has stored");
  command->callback([&cli] { cli.local = logout; });
}

}  // namespace gs::cli
