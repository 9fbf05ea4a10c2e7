// top: the cluster as it is now, again every second.
#include <fmt/format.h>
#include <unistd.h>

#include "apps/gpu_cli/cli.hpp"
#include "apps/gpu_cli/cluster.hpp"
#include "apps/gpu_cli/terminal.hpp"

namespace gs::cli {
namespace {

constexpr std::size_t kBar = 8;

struct Top {
  bool once = false;
  std::optional<double> every;
};

struct Picture {
  Json status, nodes, running, waiting;
};

Result<Picture> look(Session& session) {
  Picture picture;
  const std::pair<Json*, const char*> parts[] = {
      {&picture.status, "/api/v1/cluster/status"},
      {&picture.nodes, "/api/v1/nodes"},
      {&picture.running, "/api/v1/jobs?state=running,scheduled&limit=100"},
      {&picture.waiting, "/api/v1/jobs?state=pending,preempted&sort=-priority&limit=100"}};
  for (const auto& [part, target] : parts) {
    Result<Json> answer = session.get(target);
    if (!answer) return answer.error();
    *part = std::move(*answer);
  }
  return picture;
}

// Puts lines together, and stops where the screen ends.
class Frame {
 public:
  Frame(TerminalSize size, bool colour) : size_(size), colour_(colour) {}
  bool colour() const { return colour_; }
  std::size_t columns() const { return size_.columns; }
  std::size_t left() const { return size_.rows > lines_ + 1 ? size_.rows - lines_ - 1 : 0; }
  void line(const std::string& text) {
    if (left() == 0) return;
    out_ += text + "\n";
    ++lines_;
  }
  const std::string& text() const { return out_; }

 private:
  TerminalSize size_;
  bool colour_;
  std::size_t lines_ = 0;
  std::string out_;
};

void add_head(Frame& frame, const std::string& server, const Json& s, Instant now) {
  const double total = number_of(s, "total_gpus");
  const double used = total - number_of(s, "available_gpus");
  const std::string clock = date_text(now).substr(11);
  const std::string title = shortened("gpu-scheduler at " + server, frame.columns() - 12);
  const std::size_t space = frame.columns() - std::min(frame.columns(), display_width(title) + 9);
  frame.line(paint(title, Paint::Bold, frame.colour()) + std::string(space, ' ') + clock);
  frame.line(fmt::format(
      "GPUs {} {} of {} taken, {:.0f}% busy   Nodes {} of {} online   Jobs {} running, {} waiting",
      paint(bar(total > 0 ? used / total : 0, 12), Paint::Green, frame.colour()), number_text(used),
      number_text(total), number_of(s, "avg_gpu_utilization"),
      number_text(number_of(s, "online_nodes")), number_text(number_of(s, "total_nodes")),
      number_text(number_of(s, "running_jobs") + number_of(s, "scheduled_jobs")),
      number_text(number_of(s, "pending_jobs"))));
}

std::string gpu_text(const Json& gpu, bool colour) {
  const bool taken = gpu.value("allocated", false);
  const bool sick = text_of(gpu, "health") == "unhealthy";
  const bool hot = gpu.value("thermal_throttle", false);
  const double busy = number_of(gpu, "utilization");
  const Paint with = sick || hot ? Paint::Red : taken ? Paint::Green : Paint::Dim;
  return fmt::format("{:>3} {} {:>3.0f}% {:>3.0f}°C {}", number_text(number_of(gpu, "index")),
                     paint(bar(busy / 100, kBar), with, colour), busy,
                     number_of(gpu, "temperature"),
                     paint(sick    ? "sick"
                           : taken ? "job "
                                   : "free",
                           with, colour));
}

void add_nodes(Frame& frame, const Json& nodes) {
  constexpr std::size_t kWidth = 3 + 1 + kBar + 5 + 6 + 5 + 2;
  const std::size_t in_line = std::max<std::size_t>(1, frame.columns() / kWidth);
  for (const Json& node : nodes) {
    const Cell state = node_state(node);
    frame.line("");
    frame.line(
        fmt::format("{}  {}  {}{}  cpu {:.0f}%  memory {:.0f}%",
                    paint(printable(text_of(node, "name")), Paint::Bold, frame.colour()),
                    paint(state.text, state.paint, frame.colour()), printable(gpu_models(node)),
                    node.value("simulated", false) ? " (simulated)" : "",
                    number_of(node, "cpu_utilization"), number_of(node, "memory_utilization")));
    std::string line;
    std::size_t count = 0;
    for (const Json& gpu : list_of(node, "gpus")) {
      line += gpu_text(gpu, frame.colour()) + "  ";
      if (++count % in_line == 0) {
        frame.line(line);
        line.clear();
      }
    }
    if (!line.empty()) frame.line(line);
  }
}

void add_table(Frame& frame, const Table& table) {
  std::string_view text;
  const std::string all = table.text(frame.colour());
  for (text = all; !text.empty();) {
    const auto end = text.find('\n');
    frame.line(std::string(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
}

void add_jobs(Frame& frame, const Json& answer, bool waiting, std::size_t lines, Instant now) {
  const Json& jobs = list_of(answer, "jobs");
  frame.line("");
  if (jobs.empty()) {
    const char* none = waiting ? "no job waits" : "no job runs";
    return frame.line(paint(none, Paint::Dim, frame.colour()));
  }
  std::vector<std::string> titles = {
      waiting ? "WAITING" : "RUNNING", "NAME", "STATE", ">GPUS", ">PRIO",
      waiting ? ">WAITED" : ">RAN"};
  if (!waiting) titles.emplace_back("NODE");
  Table table(titles);
  const std::size_t rows = std::min(jobs.size(), lines > 3 ? lines - 3 : 1);
  const std::size_t name_width = std::clamp<std::size_t>(frame.columns() / 4, 12, 40);
  for (std::size_t i = 0; i < rows; ++i) {
    const Json& job = jobs[i];
    const auto since = time_of(job, waiting ? "submitted_at" : "started_at");
    table.add({text_of(job, "id"), shortened(printable(text_of(job, "name")), name_width),
               state_cell(job), gpus_text(job), number_text(number_of(job, "priority")),
               since ? short_span(now - *since) : "-", text_of(job, "node_name")});
  }
  add_table(frame, table);
  const auto total = static_cast<std::size_t>(number_of(answer, "total"));
  if (total > rows)
    frame.line(paint(fmt::format("and {} more", total - rows), Paint::Dim, frame.colour()));
}

std::string draw(const Picture& picture, const std::string& server, TerminalSize size,
                 bool colour) {
  const Instant now = wall_clock();
  Frame frame(size, colour);
  add_head(frame, server, picture.status, now);
  add_nodes(frame, list_of(picture.nodes, "nodes"));
  const std::size_t waiting = list_of(picture.waiting, "jobs").size();
  const std::size_t kept = std::min(frame.left() / 2, waiting + 4);  // for those that wait
  add_jobs(frame, picture.running, false, frame.left() - kept, now);
  add_jobs(frame, picture.waiting, true, frame.left(), now);
  return frame.text();
}

Result<int> top(Cli& cli, Session& session, const Top& flags) {
  const std::string server = session.access().server.text();
  if (flags.once || isatty(STDOUT_FILENO) == 0 || cli.wants_data()) {
    const Result<Picture> picture = look(session);
    if (!picture) return picture.error();
    const Json data{{"status", picture->status},
                    {"nodes", list_of(picture->nodes, "nodes")},
                    {"running", list_of(picture->running, "jobs")},
                    {"waiting", list_of(picture->waiting, "jobs")}};
    cli.show(data, [&] {
      return draw(*picture, server, {terminal_size().columns, 1000}, cli.colour());
    });
    return 0;
  }
  const Result<Picture> first = look(session);
  if (!first) return first.error();
  const Duration every = milliseconds(static_cast<std::int64_t>(flags.every.value_or(1) * 1000));
  Screen screen;
  for (;;) {
    const Result<Picture> picture = look(session);
    if (picture)
      screen.draw(draw(*picture, server, terminal_size(), cli.colour()));
    else
      screen.draw(paint(picture.error().message, Paint::Red, cli.colour()) + "\n");
    if (screen.wait(every)) return 0;
  }
}

}  // namespace

void add_top(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Top>();
  CLI::App* command = app.add_subcommand("top", "The cluster live: q or Ctrl-C leaves");
  command->add_flag("--once", flags->once, "One picture, then leave");
  command->add_option("--every", flags->every, "Seconds between pictures (default: 1)")
      ->check(CLI::Range(0.1, 3600.0));
  on_chosen(*command, cli, flags, top);
}

}  // namespace gs::cli
