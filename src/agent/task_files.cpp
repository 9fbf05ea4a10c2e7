#include "agent/task_files.hpp"

#include <nlohmann/json.hpp>

#include "agent/files.hpp"

namespace gs::agent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TaskOrder, allocation_id, job_id, command, script,
                                                image, environment, working_dir, user, default_user,
                                                allow_root, cpu_milli, memory_mb, max_runtime_ms,
                                                grace_ms, lease_file, log_bytes, log_files,
                                                cgroup_root, container_runtime, container_args,
                                                devices, gpus, boot_id, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TaskStatus, state, pid, supervisor_pid,
                                                started_at_ms, finished_at_ms, exit_code, signal,
                                                out_of_memory, timed_out, stopped, lease_lost,
                                                message, cgroups)

std::string order_path(const std::string& directory) { return directory + "/order.json"; }
std::string lock_path(const std::string& directory) { return directory + "/lock"; }
std::string status_path(const std::string& directory) { return directory + "/status.json"; }
std::string stop_path(const std::string& directory) { return directory + "/stop"; }

namespace {

// Output of programs may hold any bytes; a message that is no UTF-8 must not stop a report.
constexpr auto kOnBadText = nlohmann::json::error_handler_t::replace;

}  // namespace

std::string to_json(const TaskOrder& order) {
  return nlohmann::json(order).dump(1, ' ', false, kOnBadText);
}
std::string to_json(const TaskStatus& status) {
  return nlohmann::json(status).dump(1, ' ', false, kOnBadText);
}

Result<TaskOrder> read_order(const std::string& directory) {
  const auto content = read_file(order_path(directory));
  if (!content) return not_found("there is no " + order_path(directory));
  try {
    return nlohmann::json::parse(*content).get<TaskOrder>();
  } catch (const nlohmann::json::exception& error) {
    return invalid(order_path(directory) + ": " + error.what());
  }
}

TaskStatus read_status(const std::string& directory) {
  const auto content = read_file(status_path(directory));
  if (!content) return {};
  try {
    return nlohmann::json::parse(*content).get<TaskStatus>();
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace gs::agent
