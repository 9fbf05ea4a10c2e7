#include "service/records.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace gs {
namespace {

constexpr std::array<std::pair<RunState, const char*>, 7> kStates{
    {{RunState::Pending, "pending"},
     {RunState::Scheduled, "scheduled"},
     {RunState::Running, "running"},
     {RunState::Completed, "completed"},
     {RunState::Failed, "failed"},
     {RunState::Cancelled, "cancelled"},
     {RunState::Preempted, "preempted"}}};

std::optional<std::int64_t> number_after(std::string_view prefix, std::string_view id) {
  if (!id.starts_with(prefix)) return std::nullopt;
  id.remove_prefix(prefix.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  // One way to write an id: no sign, no leading zero.
  if (error != std::errc{} || end != id.data() + id.size() || id.front() < '1' || id.front() > '9')
    return std::nullopt;
  return number;
}

}  // namespace

const char* to_string(RunState state) {
  for (const auto& [value, text] : kStates)
    if (value == state) return text;
  return "?";
}

std::optional<RunState> run_state_of(const std::string& text) {
  for (const auto& [value, name] : kStates)
    if (name == text) return value;
  return std::nullopt;
}

std::string job_id(std::int64_t seq) { return "job-" + std::to_string(seq); }
std::string tenant_id(std::int64_t seq) { return "tenant-" + std::to_string(seq); }
std::optional<std::int64_t> job_seq(const std::string& id) { return number_after("job-", id); }
std::optional<std::int64_t> tenant_seq(const std::string& id) {
  return number_after("tenant-", id);
}

}  // namespace gs
