#include "agent/container.hpp"

#include <fmt/format.h>

#include "agent/files.hpp"

namespace gs::agent {
namespace {

bool one_line(const std::string& value) { return value.find('\n') == std::string::npos; }

void append_devices(const TaskOrder& order, std::vector<std::string>& command) {
  if (order.devices.empty()) return;
  if (order.container_runtime.ends_with("docker")) {
    std::string list;
    for (const std::string& device : order.devices) list += (list.empty() ? "" : ",") + device;
    // The value is read as a row of CSV: without the inner quotes a comma would end the field.
    command.insert(command.end(), {"--gpus", "\"device=" + list + "\""});
    return;
  }
  for (const std::string& device : order.devices)
    command.insert(command.end(), {"--device", "nvidia.com/gpu=" + device});
}

}  // namespace

std::string container_name(const TaskOrder& order) {
  return "gs-" + file_name_for(order.allocation_id);
}

std::vector<std::string> container_command(const TaskOrder& order, const Identity& identity,
                                           const std::vector<std::string>& inner,
                                           const std::string& script_file,
                                           const std::string& env_file) {
  std::vector<std::string> command{order.container_runtime, "run",           "--rm", "--name",
                                   container_name(order),   "--network=host"};
  if (!env_file.empty()) command.insert(command.end(), {"--env-file", env_file});
  for (const auto& [name, value] : order.environment)
    if (!one_line(value)) command.insert(command.end(), {"--env", name + "=" + value});
  if (!order.working_dir.empty()) command.insert(command.end(), {"--workdir", order.working_dir});
  if (identity.uid != 0)
    command.insert(command.end(), {"--user", fmt::format("{}:{}", identity.uid, identity.gid)});
  if (order.cpu_milli > 0)
    command.push_back(
        fmt::format("--cpus={}.{:03}", order.cpu_milli / 1000, order.cpu_milli % 1000));
  if (order.memory_mb > 0) command.push_back(fmt::format("--memory={}m", order.memory_mb));
  append_devices(order, command);
  if (!script_file.empty())
    command.insert(command.end(), {"--volume", script_file + ":" + kScriptInContainer + ":ro"});
  command.insert(command.end(), order.container_args.begin(), order.container_args.end());
  command.push_back(order.image);
  command.insert(command.end(), inner.begin(), inner.end());
  return command;
}

std::vector<std::string> remove_container_command(const TaskOrder& order) {
  std::vector<std::string> command{order.container_runtime, "rm", "--force"};
  // The others kill at once; podman would ask politely first, which we have done before.
  if (order.container_runtime.ends_with("podman")) command.insert(command.end(), {"--time", "0"});
  command.push_back(container_name(order));
  return command;
}

std::string env_file_content(const TaskOrder& order) {
  std::string content;
  for (const auto& [name, value] : order.environment)
    if (one_line(value)) content += name + "=" + value + "\n";
  return content;
}

}  // namespace gs::agent
