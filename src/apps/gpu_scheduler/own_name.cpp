#include "apps/gpu_scheduler/own_name.hpp"

#include <algorithm>
#include <array>

namespace gs {
namespace {

constexpr const char* kControllerPort = "8081";  // 8080 is the scheduler's

// `serve` has none of these.
constexpr std::array<std::string_view, 8> kOnlyKube = {"--kubeconfig",      "--context",
                                                       "--scheduler-name",  "--leader-elect",
                                                       "--no-leader-elect", "--leader-elect-lease",
                                                       "--lease-namespace", "--no-leases"};

std::string_view flag_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

bool has_flag(const std::vector<std::string>& arguments, std::string_view flag) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& one) { return flag_of(one) == flag; });
}

bool speaks_of_kubernetes(const std::vector<std::string>& arguments) {
  return std::any_of(kOnlyKube.begin(), kOnlyKube.end(),
                     [&](std::string_view flag) { return has_flag(arguments, flag); });
}

std::vector<std::string> meant_by(std::string_view name, const std::vector<std::string>& given) {
  if (name == "scheduler") return {speaks_of_kubernetes(given) ? "kube" : "serve"};
  if (name == "controller" && has_flag(given, "--port")) return {"kube"};
  if (name == "controller") return {"kube", "--port", kControllerPort};
  if (name == "agent" || name == "webhook") return {std::string(name)};
  return {};
}

}  // namespace

std::vector<std::string> arguments_by_name(std::string_view program,
                                           std::vector<std::string> arguments,
                                           const std::vector<std::string>& subcommands) {
  const bool is_written_out =
      !arguments.empty() &&
      (arguments[0] == "--version" ||
       std::find(subcommands.begin(), subcommands.end(), arguments[0]) != subcommands.end());
  if (is_written_out) return arguments;
  const std::size_t folder = program.rfind('/');
  const std::string_view name =
      folder == std::string_view::npos ? program : program.substr(folder + 1);
  const std::vector<std::string> first = meant_by(name, arguments);
  arguments.insert(arguments.begin(), first.begin(), first.end());
  return arguments;
}

}  // namespace gs
