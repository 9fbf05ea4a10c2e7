#include "agent/task_command.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/container.hpp"

namespace gs::agent {
namespace {

// Of our own environment a task gets these and no more: the rest may hold secrets of the machine.
constexpr const char* kInherited[] = {"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH"};

Status give_to(const std::string& path, const Identity& identity) {
  if (identity.change && ::chown(path.c_str(), identity.uid, identity.gid) != 0)
    return Error{ErrorCode::Internal,
                 fmt::format("cannot give {} to {}: {}", path, identity.name, errno_text(errno))};
  return ok_status();
}

Status write_script(const std::string& path, const TaskOrder& order, const Identity& identity) {
  if (Status written = replace_file(path, order.script, Durability::Later, 0700); !written.ok())
    return written;
  return give_to(path, identity);
}

// With its own interpreter in the first line a script is a program; otherwise the shell reads it.
std::vector<std::string> inner_command(const TaskOrder& order, const std::string& script) {
  std::vector<std::string> command;
  if (!order.script.empty()) {
    if (!order.script.starts_with("#!")) command.emplace_back("/bin/sh");
    command.push_back(script);
  }
  command.insert(command.end(), order.command.begin(), order.command.end());
  return command;
}

Result<std::string> working_directory(const std::string& directory, const TaskOrder& order,
                                      const Identity& identity) {
  if (!order.working_dir.empty()) return order.working_dir;
  const std::string path = directory + "/scratch";
  if (Status made = make_directories(path, 0700); !made.ok()) return made.error();
  if (Status given = give_to(path, identity); !given.ok()) return given.error();
  return path;
}

std::map<std::string, std::string> process_environment(const TaskOrder& order,
                                                       const Identity& identity) {
  std::map<std::string, std::string> environment = order.environment;
  for (const char* name : kInherited)
    if (const char* value = std::getenv(name)) environment.emplace(name, value);
  environment.emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  environment.emplace("HOME", identity.home);
  environment.emplace("USER", identity.name);
  environment.emplace("LOGNAME", identity.name);
  environment.emplace("SHELL", identity.shell);
  return environment;
}

// The runtime itself runs as we do, in our environment; what the job says goes inside only.
Result<Launch> container_launch(const std::string& directory, const TaskOrder& order,
                                const Identity& identity) {
  Launch launch;
  const std::string script = order.script.empty() ? "" : directory + "/script";
  const std::string env_file = directory + "/env";
  if (Status written = replace_file(env_file, env_file_content(order), Durability::Later);
      !written.ok())
    return written.error();
  launch.command = container_command(order, identity, inner_command(order, kScriptInContainer),
                                     script, env_file);
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string assignment = *entry;
    const std::size_t equals = assignment.find('=');
    if (equals != std::string::npos)
      launch.environment[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  launch.working_dir = directory;
  return launch;
}

}  // namespace

Result<Launch> task_launch(const std::string& directory, const TaskOrder& order,
                           bool in_container) {
  const Result<Identity> identity = identity_for(order);
  if (!identity.ok()) return identity.error();
  const std::string script = directory + "/script";
  if (!order.script.empty())
    if (Status written = write_script(script, order, *identity); !written.ok())
      return written.error();
  if (in_container) return container_launch(directory, order, *identity);

  Launch launch;
  launch.identity = *identity;
  launch.command = inner_command(order, script);
  launch.environment = process_environment(order, *identity);
  Result<std::string> folder = working_directory(directory, order, *identity);
  if (!folder.ok()) return folder.error();
  launch.working_dir = *folder;
  return launch;
}

}  // namespace gs::agent
