// Settings from environment variables.
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "model/settings_keys.hpp"

namespace gs {
namespace {

constexpr std::string_view kPrefix = "GPU_SCHEDULER_";

std::string upper(std::string_view path) {
  std::string out(path);
  for (char& c : out)
    c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// Names that begin like a section and are for others: what gpu-cli reads.
constexpr std::array<std::string_view, 2> kForOthers = {"GPU_SCHEDULER_API_KEY",
                                                        "GPU_SCHEDULER_API_URL"};

// Kubernetes and Docker describe services to their neighbours in such variables: a service named
// gpu-scheduler-metrics sets GPU_SCHEDULER_METRICS_PORT=tcp://10.0.0.7:9091.
bool is_service_link(std::string_view name, std::string_view value) {
  for (const std::string_view part : {"_SERVICE_HOST", "_SERVICE_PORT", "_TCP", "_UDP"})
    if (name.find(part) != name.npos) return true;
  return name.ends_with("_PORT") && (value.starts_with("tcp://") || value.starts_with("udp://"));
}

bool begins_like_a_section(std::string_view name) {
  for (const std::string& section : setting_sections())
    if (name.starts_with(std::string(kPrefix) + upper(section) + "_")) return true;
  return false;
}

bool is_for_others(std::string_view name, std::string_view value) {
  return std::find(kForOthers.begin(), kForOthers.end(), name) != kForOthers.end() ||
         is_service_link(name, value) || !begins_like_a_section(name);
}

const std::vector<std::string>& all_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const SettingKey& key : setting_keys()) out.push_back(environment_name(key));
    return out;
  }();
  return names;
}

// Empty: applied, or none of our business.
std::string apply_one(Settings& settings, const std::string& name, const std::string& value) {
  const auto& names = all_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return is_for_others(name, value)
               ? ""
               : fmt::format("{}: unknown setting{}", name, did_you_mean(name, names));
  if (is_service_link(name, value)) return "";
  const SettingKey& key = setting_keys()[static_cast<std::size_t>(found - names.begin())];
  const Status set = set_value(key, settings, value);
  if (!set.ok()) return fmt::format("{}: {}", name, set.error().message);
  if (std::string_view(key.path).starts_with("database.")) settings.database.given = true;
  return "";
}

}  // namespace

std::string environment_name(const SettingKey& key) {
  return std::string(kPrefix) + upper(key.path);
}

Status apply_environment(Settings& settings, const Environment& environment) {
  Environment ours;
  for (const auto& variable : environment)
    if (variable.first.starts_with(kPrefix)) ours.push_back(variable);
  std::sort(ours.begin(), ours.end());  // the order of messages is that of names
  std::vector<std::string> errors;
  for (const auto& [name, value] : ours)
    if (std::string error = apply_one(settings, name, value); !error.empty())
      errors.push_back(std::move(error));
  if (!errors.empty()) return invalid(fmt::format("{}", fmt::join(errors, "\n")));
  return ok_status();
}

}  // namespace gs
