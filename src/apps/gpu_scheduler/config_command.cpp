// `gpu-scheduler config` and `gpu-scheduler key`: what an operator needs before the first start.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/gpu_scheduler/serve.hpp"
#include "drivers/auth/api_keys.hpp"
#include "wire/settings_yaml.hpp"

namespace gs {
namespace {

struct KeyFlags {
  std::string name, role = "tenant", tenant;
};

int new_key(const KeyFlags& flags) {
  const auto role = role_of(flags.role);
  if (!role) {
    fmt::print(stderr, "gpu-scheduler: --role must be admin, tenant, viewer or agent\n");
    return 2;
  }
  Result<NewApiKey> made = make_api_key(Caller{*role, flags.tenant, flags.name});
  if (!made) {
    fmt::print(stderr, "gpu-scheduler: {}\n", made.error().message);
    return 2;
  }
  // The line goes to stdout so that it can be appended to the file; the key itself is for its
  // owner.
  fmt::print("{}\n", made->line);
  fmt::print(stderr, "The key of {}, shown only now: {}\n", flags.name, made->key);
  return 0;
}

}  // namespace

void add_config(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("config", "Print the configuration with its documentation");
  auto print = std::make_shared<bool>(false);
  command->add_flag("--print-default", *print, "All keys with their defaults, as a file (YAML)");
  command->callback([&exit_code] {
    fmt::print("{}", describe_settings());
    exit_code = 0;
  });
}

void add_key(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("key", "API keys");
  command->require_subcommand(1);
  CLI::App* fresh = command->add_subcommand(
      "new", "Make a key: its line for auth.api_keys_file on stdout, the key itself on stderr");
  auto flags = std::make_shared<KeyFlags>();
  fresh->add_option("--name", flags->name, "Whose it is: one word")->required();
  fresh->add_option("--role", flags->role, "admin, tenant, viewer or agent")->capture_default_str();
  fresh->add_option("--tenant-id", flags->tenant, "The tenant of a tenant's or viewer's key");
  fresh->callback([flags, &exit_code] { exit_code = new_key(*flags); });
}

}  // namespace gs
