#include "apps/gpu_cli/explain.hpp"

#include <fmt/format.h>

#include "apps/gpu_cli/cli.hpp"
#include "wire/clock_json.hpp"

namespace gs::cli {
namespace {

// Lines of "  title   text" under a headline.
class Facts {
 public:
  explicit Facts(bool colour) : colour_(colour) {}
  void add(const std::string& title, const std::string& text) {
    if (text.empty()) return;
    const std::string padded = fmt::format("{:<16}", title);
    out_ += "  " + paint(padded, Paint::Dim, colour_) + "  " + printable(text) + "\n";
  }
  const std::string& text() const { return out_; }

 private:
  bool colour_;
  std::string out_;
};

// The sentence says the expected start in UTC; we say it in local time, on a line of its own.
// The numbers of a quota have a line of their own, too.
std::string sentence_of(const Json& why) {
  std::string sentence = text_of(why, "sentence");
  if (const auto at = sentence.find(": quota exceeded"); at != std::string::npos)
    return sentence.substr(0, at) + "'s other jobs";
  if (const auto at = sentence.rfind("; expected start "); at != std::string::npos)
    sentence.erase(at);
  return sentence;
}

std::string start_words(const Json& answer, Instant now) {
  const auto time = time_of(answer, "expected_start");
  if (!time) return "not known: it depends on jobs that have not said how long they take";
  return fmt::format("{} ({})", clock_text(*time, now), from_now(*time, now));
}

std::string filter_words(const Json& why) {
  std::string out;
  for (const Json& filter : list_of(why, "filters"))
    out += fmt::format("{}{} by {}", out.empty() ? "" : ", ",
                       plural(static_cast<std::int64_t>(number_of(filter, "nodes")), "node"),
                       text_of(filter, "filter"));
  return out;
}

std::string candidate_words(const Json& why) {
  if (!why.contains("best_candidate")) return "";
  const Json& best = why["best_candidate"];
  return fmt::format("{}: {} of {} {}", text_of(best, "node"), number_text(number_of(best, "has")),
                     number_text(number_of(best, "needs")), text_of(best, "of"));
}

// What a quota is about, and how much one unit of the books is.
struct Measure {
  std::string_view resource, words;
  double unit;
};
constexpr Measure kMeasures[] = {{"gpu_milli", "GPUs", 1000},
                                 {"gpu_memory_mib", "GiB of GPU memory", 1024},
                                 {"cpu_milli", "CPU cores", 1000},
                                 {"memory_bytes", "GiB of memory", 1024.0 * 1024 * 1024},
                                 {"running_jobs", "running jobs", 1}};

std::string quota_words(const Json& why) {
  if (!why.contains("quota")) return "";
  const Json& quota = why["quota"];
  std::string resource = text_of(quota, "resource");
  const std::string guaranteed = "guaranteed ";
  const bool of_guarantee = resource.starts_with(guaranteed);
  if (of_guarantee) resource.erase(0, guaranteed.size());
  Measure measure{resource, resource, 1000};  // of one model: "gpus of H100"
  for (const Measure& known : kMeasures)
    if (known.resource == resource) measure = known;
  const auto amount = [&](const char* field) {
    return number_text(number_of(quota, field) / measure.unit);
  };
  return fmt::format("{} of {}{} {} in use by {}, this job asks for {}", amount("current"),
                     of_guarantee ? guaranteed : "", amount("limit"), measure.words,
                     text_of(quota, "tenant_id"), amount("requested"));
}

std::string reservation_words(const Json& why, Instant now) {
  if (!why.contains("reservation")) return "";
  const Json& reservation = why["reservation"];
  std::string nodes;
  for (const Json& node : list_of(reservation, "nodes"))
    nodes += (nodes.empty() ? "" : ", ") + node.get<std::string>();
  const auto start = time_of(reservation, "start");
  if (nodes.empty() || !start) return nodes;
  return fmt::format("{} from {}", nodes, clock_text(*start, now));
}

std::string position_words(const Json& answer) {
  const auto position = static_cast<std::int64_t>(number_of(answer, "queue_position"));
  if (position <= 0) return "";
  return position == 1 ? "first in the queue" : fmt::format("number {} in the queue", position);
}

void add_why(Facts& facts, const Json& answer, Instant now) {
  const Json why = answer.value("why", Json::object());
  const bool never = text_of(why, "verdict") == "never";
  if (text_of(why, "constraint") == "held") return;  // by people, or by other jobs
  facts.add("expected start", never ? "never, as things are" : start_words(answer, now));
  facts.add("position", position_words(answer));
  facts.add("best candidate", candidate_words(why));
  facts.add("ruled out", filter_words(why));
  facts.add("quota", quota_words(why));
  facts.add("reserved for it", reservation_words(why, now));
  facts.add("constraint", text_of(why, "constraint") == "none" ? "" : text_of(why, "constraint"));
}

std::string scores_words(const Json& answer) {
  const Json& scores = list_of(answer, "scores");
  if (scores.empty()) return "";
  const Json& score = scores.front();
  return fmt::format(
      "{:.2f} = resources {:.2f} + topology {:.2f} + domain {:.2f} + history {:.2f} + affinity "
      "{:.2f}",
      number_of(score, "total"), number_of(score, "resource_availability"),
      number_of(score, "topology_alignment"), number_of(score, "domain_utilization"),
      number_of(score, "historical_performance"), number_of(score, "affinity"));
}

// What follows "waits": a sentence that begins so itself does not say it again.
std::string after_verb(const std::string& sentence, bool never) {
  constexpr std::string_view kWaits = "waits ";
  if (!never && sentence.starts_with(kWaits)) return sentence.substr(kWaits.size() - 1);
  return sentence.empty() ? ": it has not been its turn yet" : ": " + sentence;
}

std::string waiting_words(const Json& job, const Json& answer, const std::string& name, Instant now,
                          bool colour) {
  const Json why = answer.value("why", Json::object());
  const std::string sentence = printable(sentence_of(why));
  const std::string id = text_of(job, "id");
  Facts facts(colour);
  std::string head;
  if (job.value("held", false)) {
    head = paint("is held", Paint::Yellow, colour) + "; it starts after: gpu-cli release " + id;
  } else {
    const bool never = text_of(why, "verdict") == "never";
    head = paint(never ? "cannot start" : "waits", never ? Paint::Red : Paint::Yellow, colour);
    head += after_verb(sentence, never);
    add_why(facts, answer, now);
  }
  std::string depends;
  for (const Json& one : list_of(job, "depends_on"))
    depends +=
        (depends.empty() ? "" : ", ") +
        (one.is_string() ? one.get<std::string>() : text_of(one, "job_id") + " (however it ends)");
  facts.add("after", depends);
  if (const auto since = time_of(job, "submitted_at"))
    facts.add("submitted", fmt::format("{} ({})", clock_text(*since, now), ago(*since, now)));
  return fmt::format("{} {}\n{}", name, head, facts.text());
}

std::string placed_words(const Json& job, const Json& answer, const std::string& name, Instant now,
                         bool colour) {
  Facts facts(colour);
  const auto started = time_of(job, "started_at");
  const auto submitted = time_of(job, "submitted_at");
  const std::string state = text_of(job, "state");
  facts.add("since",
            started ? fmt::format("{} ({})", clock_text(*started, now), long_span(now - *started))
                    : "it is being started");
  if (started && submitted) facts.add("waited", long_span(*started - *submitted));
  if (const double limit = number_of(job, "max_runtime_minutes"); limit > 0 && started) {
    const Instant end = *started + minutes(static_cast<std::int64_t>(limit));
    facts.add("ends by", fmt::format("{} ({})", clock_text(end, now), from_now(end, now)));
  }
  facts.add("score", scores_words(answer));
  const std::string verb = state == "running" ? "runs" : "is " + state;
  return fmt::format("{} {} on {}\n{}", name, paint(verb, Paint::Green, colour),
                     printable(places_words(list_of(answer, "places"))), facts.text());
}

std::string ended_words(const Json& job, const std::string& name, Instant now, bool colour) {
  Facts facts(colour);
  const auto started = time_of(job, "started_at");
  const auto completed = time_of(job, "completed_at");
  if (completed)
    facts.add("ended", fmt::format("{} ({})", clock_text(*completed, now), ago(*completed, now)));
  if (started && completed) facts.add("ran", long_span(*completed - *started));
  if (!started) facts.add("ran", "never");
  facts.add("on", text_of(job, "node_name"));
  if (job.contains("exit_code") && job["exit_code"].is_number())
    facts.add("exit code", number_text(number_of(job, "exit_code")));
  if (const double signal = number_of(job, "signal"); signal > 0)
    facts.add("signal", number_text(signal));
  facts.add("message", text_of(job, "message"));
  const std::string state = text_of(job, "state");
  const Paint paint_as = state == "completed" ? Paint::Green : Paint::Red;
  return fmt::format("{} has {}\n{}", name,
                     paint(state == "cancelled" ? "been cancelled" : state, paint_as, colour),
                     facts.text());
}

}  // namespace

std::string places_words(const Json& places) {
  std::vector<std::pair<std::string, std::vector<int>>> nodes;
  for (const Json& place : places) {
    const std::string node = text_of(place, "node");
    if (nodes.empty() || nodes.back().first != node) nodes.push_back({node, {}});
    for (const Json& gpu : list_of(place, "gpus")) nodes.back().second.push_back(gpu.get<int>());
  }
  std::string out;
  for (auto& [node, gpus] : nodes) {
    std::sort(gpus.begin(), gpus.end());
    out += (out.empty() ? "" : ", ") + node;
    if (!gpus.empty())
      out += fmt::format(" {} {}", gpus.size() == 1 ? "GPU" : "GPUs", numbers_text(gpus));
  }
  return out.empty() ? "no node" : out;
}

std::string why_words(const Json& job, const Json& answer, Instant now, bool colour) {
  const std::string state = text_of(job, "state");
  const std::string name =
      paint(text_of(job, "id"), Paint::Bold, colour) + " (" + printable(text_of(job, "name")) + ")";
  if (state == "running" || state == "scheduled")
    return placed_words(job, answer, name, now, colour);
  if (state == "pending" || state == "preempted")
    return waiting_words(job, answer, name, now, colour);
  return ended_words(job, name, now, colour);
}

std::string pod_words(const Json& answer, Instant now, bool colour) {
  const std::string name = paint("pod " + printable(text_of(answer, "pod")), Paint::Bold, colour);
  const std::string state = text_of(answer, "engine_state");
  Facts facts(colour);
  if (!list_of(answer, "places").empty() || state == "running") {
    facts.add("score", scores_words(answer));
    return fmt::format("{} {} {}\n{}", name, paint("has", Paint::Green, colour),
                       printable(places_words(list_of(answer, "places"))), facts.text());
  }
  if (state == "ended") return name + " has ended\n";
  const Json why = answer.value("why", Json::object());
  const bool never = text_of(why, "verdict") == "never";
  add_why(facts, answer, now);
  return fmt::format(
      "{} {}{}\n{}", name,
      paint(never ? "cannot start" : "waits", never ? Paint::Red : Paint::Yellow, colour),
      after_verb(printable(sentence_of(why)), never), facts.text());
}

std::string dry_run_words(const Json& answer, bool colour) {
  const Instant now = wall_clock();
  Facts facts(colour);
  if (answer.value("starts_now", false)) {
    std::string evicted;
    for (const Json& job : list_of(answer, "evicts"))
      evicted += (evicted.empty() ? "" : ", ") + job.get<std::string>();
    facts.add("on", places_words(list_of(answer, "places")));
    facts.add("after stopping", evicted);
    return paint("would start now", Paint::Green, colour) + "\n" + facts.text();
  }
  const Json why = answer.value("why", Json::object());
  const bool never = text_of(why, "verdict") == "never";
  add_why(facts, answer, now);
  return fmt::format(
      "{}{}\n{}",
      paint(never ? "would never start" : "would wait", never ? Paint::Red : Paint::Yellow, colour),
      after_verb(printable(sentence_of(why)), never), facts.text());
}

namespace {

struct Job {
  std::string job;
  std::string name_space = "default";
};

constexpr std::string_view kPod = "pod/";

Result<int> why_pod(Cli& cli, Session& session, const Job& flags) {
  std::string name = flags.job.substr(kPod.size());
  if (name.find('/') == std::string::npos) name = flags.name_space + "/" + name;
  const Result<Json> answer = session.get("/explain" + query_text({{"pod", name}}));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return pod_words(*answer, wall_clock(), cli.colour()); });
  return 0;
}

Result<int> why(Cli& cli, Session& session, const Job& flags) {
  if (flags.job.starts_with(kPod)) return why_pod(cli, session, flags);
  const Result<std::string> id = session.job_id(flags.job);
  if (!id) return id.error();
  const Result<Json> answer = session.get(path_of("jobs", *id, "explain"));
  if (!answer) return answer.error();
  if (cli.wants_data()) {
    cli.show(*answer, {});
    return 0;
  }
  const Result<Json> job = session.get(path_of("jobs", *id));
  if (!job) return job.error();
  put(why_words(*job, *answer, wall_clock(), cli.colour()));
  return 0;
}

}  // namespace

void add_why_online(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<Job>();
  CLI::App* command = app.add_subcommand(
      "why", "Why a job waits and when it starts, or where it runs and why there");
  command
      ->add_option("job", flags->job,
                   "Id or name of the job; pod/NAME: a pod, where --server is gpu-scheduler kube")
      ->required();
  command->add_option("-n,--namespace", flags->name_space, "Of the pod")->capture_default_str();
  on_chosen(*command, cli, flags, why);
}

}  // namespace gs::cli
