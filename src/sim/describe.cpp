#include "sim/describe.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace gs {
namespace {

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded:
      return "succeeded";
    case Outcome::Failed:
      return "failed";
    case Outcome::NodeLost:
      return "was lost with its node";
    case Outcome::Stopped:
      return "stopped";
  }
  return "?";
}

const char* word(Health health) {
  switch (health) {
    case Health::Healthy:
      return "healthy";
    case Health::Unhealthy:
      return "unhealthy";
    case Health::Unknown:
      return "unknown";
  }
  return "?";
}

struct CommandText {
  std::string operator()(const SetConfig&) const { return "configuration"; }
  std::string operator()(const SetTopology& c) const {
    return fmt::format("topology {}", fmt::join(c.levels, " "));
  }
  std::string operator()(const PutNode& c) const {
    return fmt::format("node {} ({})", c.node.name,
                       plural(static_cast<long long>(c.node.gpus.size()), "GPU"));
  }
  std::string operator()(const RemoveNode& c) const { return "node " + c.name + " disappears"; }
  std::string operator()(const CordonNode& c) const {
    return (c.drain ? "drain " : c.cordoned ? "cordon " : "uncordon ") + c.name;
  }
  std::string operator()(const ReportGpu& c) const {
    return fmt::format("gpu {}:{} {} {} C", c.node, c.gpu, word(c.health), c.temperature_c);
  }
  std::string operator()(const PutTenant& c) const { return "tenant " + c.tenant.id; }
  std::string operator()(const RemoveTenant& c) const { return "tenant " + c.id + " goes"; }
  std::string operator()(const SubmitJob& c) const {
    return fmt::format("submit {} of {} ({})", c.job.id, c.job.tenant,
                       plural(task_count(c.job), "task"));
  }
  std::string operator()(const CancelJob& c) const { return "cancel " + c.id; }
  std::string operator()(const HoldJob& c) const { return (c.held ? "hold " : "release ") + c.id; }
  std::string operator()(const SetPriority& c) const {
    return fmt::format("priority of {} is {}", c.id, c.priority);
  }
  std::string operator()(const MembersArrived& c) const {
    return fmt::format("{} of {} arrived", plural(c.arrived, "member"), c.id);
  }
  std::string operator()(const TaskStarted& c) const { return describe(c.task) + " runs"; }
  std::string operator()(const TaskEnded& c) const {
    return describe(c.task) + " " + word(c.outcome);
  }
  std::string operator()(const AdoptTask& c) const {
    return fmt::format("found {} on {}:{}", describe(c.task), c.node, describe_gpus(c.gpus));
  }
};

struct EffectText {
  std::string operator()(const StartTasks& e) const {
    return fmt::format("start {} on {}", e.job, places(e.tasks));
  }
  std::string operator()(const StopTasks& e) const {
    std::string text = fmt::format("stop {} ({}", e.job, to_string(e.reason));
    if (!e.for_job.empty()) text += " for " + e.for_job;
    text += "):";
    for (const TaskRef& task : e.tasks) text += " " + describe(task);
    return text;
  }
  std::string operator()(const NominateTasks& e) const {
    return fmt::format("nominate {} for {}", e.job, places(e.tasks));
  }
  std::string operator()(const JobChanged& e) const {
    std::string text = e.job + " is " + e.state;
    if (e.why) text += fmt::format(" [{}] {}", to_string(e.why->constraint), e.why->sentence);
    return text;
  }
  static std::string places(const std::vector<TaskPlace>& tasks) {
    std::string text;
    for (const TaskPlace& place : tasks)
      text += (text.empty() ? "" : " ") + describe(place.task) + "=" + describe(place);
    return text;
  }
};

}  // namespace

std::string plural(long long count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describe_gpus(std::vector<int> gpus) {
  std::sort(gpus.begin(), gpus.end());
  std::string text;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t j = i;
    while (j + 1 < gpus.size() && gpus[j + 1] == gpus[j] + 1) ++j;
    if (!text.empty()) text += ",";
    text += std::to_string(gpus[i]);
    if (j > i) text += "-" + std::to_string(gpus[j]);
    i = j + 1;
  }
  return text;
}

std::string describe(const TaskPlace& place) {
  std::string text = place.node;
  if (!place.mig.empty()) {
    for (std::size_t i = 0; i < place.mig.size(); ++i)
      text += fmt::format("{}{}/{}@{}", i == 0 ? ":" : ",", place.mig[i].gpu, place.mig[i].profile,
                          place.mig[i].start);
    return text;
  }
  if (!place.gpus.empty()) text += ":" + describe_gpus(place.gpus);
  return text;
}

std::string describe(const TaskRef& task) {
  return task.group == 0 ? fmt::format("{}/{}", task.job, task.rank)
                         : fmt::format("{}/{}/{}", task.job, task.group, task.rank);
}

std::string describe(Duration d) {
  if (d.ms < 0) return "-" + describe(Duration{-d.ms});
  if (d.ms % 1000 != 0) return fmt::format("{}ms", d.ms);
  const std::int64_t s = d.ms / 1000;
  std::string text;
  if (s >= 3600) text += fmt::format("{}h", s / 3600);
  if (s % 3600 >= 60) text += fmt::format("{}m", s % 3600 / 60);
  if (s % 60 != 0 || text.empty()) text += fmt::format("{}s", s % 60);
  return text;
}

std::string describe(Instant t) { return t.is_never() ? "never" : describe(Duration{t.ms}); }

std::string describe(const Command& command) { return std::visit(CommandText{}, command); }
std::string describe(const Effect& effect) { return std::visit(EffectText{}, effect); }
std::string describe(const Effects& effects) {
  std::string text;
  for (const Effect& effect : effects) text += describe(effect) + "\n";
  return text;
}

}  // namespace gs
