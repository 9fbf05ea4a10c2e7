#include "sim/demo.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.hpp"
#include "sim/colour.hpp"
#include "sim/demo_story.hpp"
#include "sim/describe.hpp"
#include "sim/scenario.hpp"

namespace gs {
namespace {

constexpr int kFirstHour = 9;  // the story begins at nine in the morning

std::string clock(Instant t) {
  const std::int64_t minutes = t.ms / 60'000;
  return fmt::format("{:02}:{:02}", (kFirstHour + minutes / 60) % 24, minutes % 60);
}

std::string join_places(const std::vector<TaskPlace>& places) {
  std::map<std::string, std::set<int>> gpus;
  std::map<std::string, std::string> mig;
  for (const TaskPlace& place : places) {
    gpus[place.node].insert(place.gpus.begin(), place.gpus.end());
    for (const MigPlace& m : place.mig)
      mig[place.node] += fmt::format(" {} of GPU {}", m.profile, m.gpu);
  }
  std::string text;
  for (const auto& [node, ids] : gpus) {
    text += (text.empty() ? "" : " ") + node;
    if (!ids.empty()) text += ":" + describe_gpus({ids.begin(), ids.end()});
    text += mig[node];
  }
  return text;
}

class Teller {
 public:
  explicit Teller(bool colour) : colour_(colour) {
    play_.world().watch([this](World&, const LogEntry& entry) { listen(entry); });
  }

  std::string tell() {
    std::string script;
    std::vector<int> first_lines;
    for (const Chapter& chapter : kDemoStory) {
      first_lines.push_back(static_cast<int>(std::count(script.begin(), script.end(), '\n')) + 1);
      script += chapter.lines;
    }
    const auto scenario = scenario::read_scenario("demo", script);
    CHECK_MSG(scenario.ok(), scenario.ok() ? "" : scenario.error().message);
    const auto& steps = scenario->cases.front().steps;
    std::size_t next = 0;
    for (std::size_t i = 0; i < kDemoStory.size(); ++i) {
      const int end = i + 1 < first_lines.size() ? first_lines[i + 1] : 1'000'000;
      events_.clear();
      for (; next < steps.size() && steps[next].line < end; ++next) play_.step(steps[next]);
      play_.world().settle();
      chapter(static_cast<int>(i) + 1, kDemoStory[i].title);
    }
    closing();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += text + "\n"; }
  std::string tint(const std::string& text, Paint paint_with) const {
    return paint(text, paint_with, colour_);
  }

  // ---------------------------------------------------------------- what happens

  void listen(const LogEntry& entry) {
    if (entry.command) hear(*entry.command, entry);
    for (const Effect& effect : entry.effects) hear(effect, entry.now);
  }

  void event(Instant now, const std::string& mark, const std::string& text, Paint paint_with) {
    const std::string when = tint(clock(now), Paint::Dim);
    const std::string row = fmt::format("  {}  {} {}", when, tint(mark, paint_with), text);
    if (events_.empty() || events_.back() != row) events_.push_back(row);
  }

  void hear(const Command& command, const LogEntry& entry) {
    if (const auto* submit = std::get_if<SubmitJob>(&command)) {
      const Job& job = submit->job;
      remember(job);
      event(entry.now, "+", fmt::format("{} of {} arrives: {}", name(job.id), job.tenant, ask(job)),
            Paint::Bold);
      if (entry.error) event(entry.now, "!", "refused: " + entry.error->message, Paint::Red);
    } else if (const auto* gpu = std::get_if<ReportGpu>(&command)) {
      const bool broken = gpu->health == Health::Unhealthy;
      event(entry.now, broken ? "x" : "o",
            fmt::format("GPU {} of {} is {}", gpu->gpu, gpu->node, broken ? "broken" : "healthy"),
            broken ? Paint::Red : Paint::Green);
    } else if (const auto* cordon = std::get_if<CordonNode>(&command)) {
      event(entry.now, "o",
            fmt::format("{} is {}", cordon->name,
                        cordon->drain ? "drained: its work moves away" : "back in service"),
            Paint::Yellow);
    }
  }

  void hear(const Effect& effect, Instant now) {
    if (const auto* starts = std::get_if<StartTasks>(&effect)) {
      event(now, ">", fmt::format("{} starts on {}", name(starts->job), join_places(starts->tasks)),
            Paint::Green);
    } else if (const auto* stops = std::get_if<StopTasks>(&effect)) {
      hear_stop(*stops, now);
    } else if (const auto* changed = std::get_if<JobChanged>(&effect)) {
      if (changed->state == "completed")
        event(now, "*", name(changed->job) + " is done", Paint::Cyan);
    }
  }

  // Stops of one job for one reason that follow each other are one event.
  void hear_stop(const StopTasks& stops, Instant now) {
    const auto key = std::tuple(stops.job, stops.for_job, stops.reason, now.ms);
    const bool same = last_stop_ == key && !events_.empty();
    if (same) events_.pop_back();
    stopped_ = (same ? stopped_ : 0) + static_cast<long long>(stops.tasks.size());
    last_stop_ = key;
    const std::string who = stops.for_job.empty() ? "" : " for " + name(stops.for_job);
    event(now, "<",
          fmt::format("{}: {} stopped ({}{})", name(stops.job), plural(stopped_, "task"),
                      to_string(stops.reason), who),
          Paint::Yellow);
  }

  // ---------------------------------------------------------------- jobs

  struct Known {
    char letter = '?';
    Paint paint = Paint::Plain;
    std::string tenant;
  };

  void remember(const Job& job) {
    static constexpr Paint kPaints[] = {Paint::Blue, Paint::Green, Paint::Magenta, Paint::Cyan};
    const auto [tenant, added] = tenants_.try_emplace(job.tenant, tenants_.size());
    jobs_[job.id] = {static_cast<char>('A' + jobs_.size() % 26),
                     kPaints[tenant->second % std::size(kPaints)], job.tenant};
  }
  std::string name(const std::string& id) const {
    const auto known = jobs_.find(id);
    return known == jobs_.end() ? id : tint(id, known->second.paint);
  }
  static std::string ask(const Job& job) {
    const Group& group = job.groups.front();
    const GpuRequest& gpu = group.request.gpu;
    std::string text = group.count > 1 ? fmt::format("{} tasks of ", group.count) : "";
    if (!gpu.mig.empty())
      text += "MIG " + gpu.mig.front().profile;
    else if (gpu.sharing == Sharing::Shared)
      text += fmt::format("{} % of a GPU", gpu.milli / 10);
    else
      text += plural(gpu.count, "GPU");
    if (group.min > 0) text += fmt::format(", {} are enough to start", group.min);
    if (!group.topology.required_level.empty())
      text += ", all in one " + group.topology.required_level;
    text += fmt::format(", priority {}", job.priority);
    return job.expected_runtime ? text + ", for " + describe(*job.expected_runtime) : text;
  }

  // ---------------------------------------------------------------- pictures

  void chapter(int number, const std::string& title) {
    line("");
    line(tint(fmt::format("{}. {}", number, title), Paint::Bold));
    for (const std::string& row : events_) line(row);
    map();
    waiting();
  }

  std::map<std::pair<std::string, int>, std::string> holders() {
    std::map<std::pair<std::string, int>, std::string> cells;
    for (const auto& [key, live] : play_.world().tasks()) {
      const Known& job = jobs_[key.first];
      const bool part = !live.place.mig.empty() || is_share(key.first);
      const char letter = part ? static_cast<char>(job.letter - 'A' + 'a') : job.letter;
      const std::string cell = tint(std::string(1, letter), job.paint);
      for (const int gpu : live.place.gpus) cells.emplace(std::pair{live.place.node, gpu}, cell);
      for (const MigPlace& m : live.place.mig)
        cells.emplace(std::pair{live.place.node, m.gpu}, cell);
    }
    return cells;
  }
  bool is_share(const std::string& id) const {
    const Cluster& cluster = play_.world().engine().cluster();
    const JobId job = cluster.find_job(id);
    return job.valid() &&
           !cluster.shapes().at(cluster.shape_of(job).groups.front().shape).exclusive();
  }

  // One row per leaf: its nodes, a letter per GPU; lower case where several may share it.
  void map() {
    const Cluster& cluster = play_.world().engine().cluster();
    const auto cells = holders();
    std::map<std::string, std::string> rows;
    for (std::size_t i = 0; i < cluster.node_count(); ++i) {
      const NodeState& node = cluster.node(NodeId{i});
      if (node.gone) continue;
      std::string& row = rows[cluster.domains().path(node.domain)];
      row += "  " + node.spec.name + (node.spec.cordoned ? tint("!", Paint::Red) : " ");
      for (const Gpu& gpu : node.spec.gpus) {
        const auto cell = cells.find({node.spec.name, gpu.index});
        if (gpu.index == 4) row += " ";
        if (gpu.health != Health::Healthy)
          row += tint("x", Paint::Red);
        else
          row += cell == cells.end() ? tint(gpu.mig_enabled ? ":" : ".", Paint::Dim) : cell->second;
      }
    }
    for (const auto& [leaf, row] : rows) line(fmt::format("      {:<16}{}", leaf, row));
    legend();
  }

  void legend() {
    std::set<std::string> shown;
    for (const auto& [key, live] : play_.world().tasks()) shown.insert(key.first);
    if (shown.empty()) return;
    std::string text;
    for (const std::string& id : shown) {
      const Known& job = jobs_[id];
      text += fmt::format("{}{} {}", text.empty() ? "" : "  ",
                          tint(std::string(1, job.letter), job.paint), id);
    }
    line(tint("      ", Paint::Dim) + text);
  }

  void waiting() {
    for (const auto& [id, history] : play_.jobs()) {
      if (history.state != "waiting") continue;
      const auto explained = play_.world().engine().explain(id, play_.world().now());
      if (!explained || !explained->why) continue;
      std::string why = explained->why->sentence;
      if (const auto cut = why.find("; expected start"); cut != std::string::npos) why.resize(cut);
      if (explained->expected_start)
        why += tint(fmt::format("  -> expected to start at {}", clock(*explained->expected_start)),
                    Paint::Cyan);
      line(fmt::format("      {} {}: {}", tint("waits", Paint::Yellow), name(id), why));
    }
  }

  void closing() {
    line("");
    line(tint("Try next:", Paint::Bold));
    line(
        "  gpu-scheduler sim run tests/scenarios           every behaviour, as a file you can "
        "read");
    line("  gpu-scheduler sim run -v FILE.scn               the same, step by step");
    line("  gpu-cli offline why FILE.scn JOB                why a job waits, and for how long");
  }

  bool colour_;
  mutable scenario::Play play_;
  std::map<std::string, Known> jobs_;
  std::map<std::string, std::size_t> tenants_;
  std::vector<std::string> events_;
  std::tuple<std::string, std::string, StopReason, std::int64_t> last_stop_;
  long long stopped_ = 0;
  std::string out_;
};

}  // namespace

std::string tell_demo(bool colour) { return Teller(colour).tell(); }

void add_demo(CLI::App& sim, int& exit_code) {
  CLI::App* command =
      sim.add_subcommand("demo", "Watch a small cluster for a day: who runs where, who waits, why");
  command->callback([&exit_code] {
    fmt::print("{}", tell_demo(wants_colour()));
    exit_code = 0;
  });
}

}  // namespace gs
