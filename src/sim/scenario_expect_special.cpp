// Expectations that are not about the state of one job: refusals, dry runs, tenants, nodes, replay.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/describe.hpp"
#include "sim/scenario_expect.hpp"

namespace gs::scenario {
namespace {

bool contains_all(const std::string& text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

std::string reason_word(Words& words) {
  if (!words.take_if("because") || (words.left() && words.peek().quoted)) return {};
  std::string word = words.take("a reason");
  if (!is_constraint(word)) words.fail(unknown("reason", word, constraint_words()));
  return word;
}

// A refusal by quota or queue length is told by its code; the rest by the dry run's explanation.
bool refused_because(const Play::Refusal& refusal, const std::string& reason) {
  if (reason.empty()) return true;
  if (reason == "quota" && refusal.error.code == ErrorCode::QuotaExceeded) return true;
  if (reason == "queue-full" && refusal.error.code == ErrorCode::QueueFull) return true;
  if (reason == "invalid") return !refusal.why && refusal.error.code == ErrorCode::InvalidArgument;
  return refusal.why && reason == to_string(refusal.why->constraint);
}

Expect refused(Words& words, bool of_job) {
  const std::string job = of_job ? words.take("a job") : "";
  const std::string reason = reason_word(words);
  const std::vector<std::string> texts = words.take_quoted();
  Check check = [=](Play& play) -> std::optional<std::string> {
    const auto& refusal = play.refusal();
    if (of_job && (!refusal || refusal->job != job)) return play.describe_job(job);
    if (!refusal) return "nothing was refused";
    if (refused_because(*refusal, reason) && contains_all(refusal->error.message, texts))
      return std::nullopt;
    return fmt::format("refused because {}\"{}\"",
                       refusal->why ? to_string(refusal->why->constraint) + std::string(" ") : "",
                       refusal->error.message);
  };
  return {std::move(check), "", true};
}

// ---------------------------------------------------------------- dry run

std::string describe_answer(const DryRun& answer) {
  std::string text = answer.starts_now ? "starts now" : "does not start now";
  if (!answer.places.empty()) text += " on";
  for (const TaskPlace& place : answer.places) text += " " + describe(place);
  if (!answer.evicts.empty()) text += " evicting";
  for (const TaskRef& task : answer.evicts) text += " " + describe(task);
  if (answer.why)
    text +=
        fmt::format(" because {} \"{}\"", to_string(answer.why->constraint), answer.why->sentence);
  if (answer.expected_start) text += ", expected start " + describe(*answer.expected_start);
  return text;
}

struct DryRunWish {
  bool starts = false, evicts = false, waits = false, never = false;
  std::string nodes, jobs, reason;
  std::vector<std::string> texts;
  std::optional<Instant> at;
};

DryRunWish read_dry_run_wish(Words& words) {
  DryRunWish wish;
  while (words.left()) {
    if (words.take_if("starts")) {
      wish.starts = true;
    } else if (words.take_if("waits")) {
      wish.waits = true;
    } else if (words.take_if("never")) {
      wish.never = true;
    } else if (words.take_if("evicting")) {
      wish.evicts = true;
      wish.jobs = words.take("jobs");
    } else if (words.take_if("on")) {
      wish.nodes = words.take("places");
    } else if (words.take_if("until")) {
      wish.at = Instant{words.value("a time").duration().ms};
    } else if (words.next_is("because")) {
      wish.reason = reason_word(words);
      wish.texts = words.take_quoted();
    } else {
      words.fail(unknown("clause", words.peek().value,
                         {"starts", "waits", "never", "evicting", "on", "until", "because"}));
    }
  }
  return wish;
}

bool fulfils(const DryRun& answer, const DryRunWish& wish) {
  std::set<std::string> places;
  std::set<std::string> nodes;
  std::set<std::string> victims;
  for (const TaskPlace& place : answer.places) {
    places.insert(describe(place));
    nodes.insert(place.node);
  }
  for (const TaskRef& task : answer.evicts) victims.insert(task.job);
  const auto is = [](const std::set<std::string>& set, const std::string& text) {
    return fmt::format("{}", fmt::join(set, "+")) == text;
  };
  bool good = true;
  if (wish.starts) good &= answer.starts_now || (wish.evicts && !answer.evicts.empty());
  if (wish.starts && !wish.evicts) good &= answer.evicts.empty();
  if (wish.waits) good &= !answer.starts_now && answer.evicts.empty();
  if (wish.never) good &= answer.why && answer.why->verdict == Verdict::Never;
  if (!wish.nodes.empty()) good &= is(places, wish.nodes) || is(nodes, wish.nodes);
  if (wish.evicts) good &= is(victims, wish.jobs);
  if (!wish.reason.empty()) good &= answer.why && wish.reason == to_string(answer.why->constraint);
  if (!wish.texts.empty()) good &= answer.why && contains_all(answer.why->sentence, wish.texts);
  if (wish.at) good &= answer.expected_start && *answer.expected_start == *wish.at;
  return good;
}

Expect dry_run(Words& words) {
  const DryRunWish wish = read_dry_run_wish(words);
  return {[=](Play& play) -> std::optional<std::string> {
            if (!play.dry_run()) return "there was no dry run";
            if (fulfils(*play.dry_run(), wish)) return std::nullopt;
            return describe_answer(*play.dry_run());
          },
          "", false};
}

// ---------------------------------------------------------------- tenants and nodes

std::optional<std::string> compare(const std::map<std::string, std::int64_t>& wanted,
                                   const std::map<std::string, std::int64_t>& actual) {
  bool good = true;
  for (const auto& [key, value] : wanted) good &= actual.at(key) == value;
  if (good) return std::nullopt;
  std::string text;
  for (const auto& [key, value] : actual)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

std::map<std::string, std::int64_t> take_amounts(Words& words,
                                                 const std::vector<std::string>& known) {
  std::map<std::string, std::int64_t> wanted;
  for (const Word& word : words.take_pairs()) {
    std::string problem;
    if (std::find(known.begin(), known.end(), word.key) == known.end())
      words.fail(unknown("key", word.key, known));
    wanted[word.key] = Value(word.value, problem).milli();
    if (!problem.empty()) words.fail(problem);
  }
  if (wanted.empty()) words.fail("values are missing, such as gpus=4");
  return wanted;
}

Expect tenant(Words& words) {
  const std::string id = words.take("a tenant");
  const auto wanted = take_amounts(words, {"gpus", "cpu", "jobs", "waiting"});
  return {[=](Play& play) -> std::optional<std::string> {
            const Cluster& cluster = play.world().engine().cluster();
            const TenantId tenant = cluster.find_tenant(id);
            if (!tenant.valid()) return "there is no tenant " + id;
            const TenantRecord& r = cluster.tenant(tenant);
            return compare(wanted, {{"gpus", r.used.gpu_milli},
                                    {"cpu", r.used.cpu_milli},
                                    {"jobs", r.running_jobs * 1000},
                                    {"waiting", r.waiting_jobs * 1000}});
          },
          "", false};
}

Expect node(Words& words) {
  const std::string name = words.take("a node");
  const auto wanted = take_amounts(words, {"free", "tasks", "cpu-free"});
  return {[=](Play& play) -> std::optional<std::string> {
            const Cluster& cluster = play.world().engine().cluster();
            const NodeId id = cluster.find_node(name);
            if (!id.valid() || cluster.node(id).gone) return "there is no node " + name;
            const NodeState& n = cluster.node(id);
            return compare(wanted, {{"free", 1000 * gpu_count(n.free_gpus(View::Now))},
                                    {"tasks", 1000 * static_cast<std::int64_t>(n.tasks.size())},
                                    {"cpu-free", n.cpu_milli.free(View::Now)}});
          },
          "", false};
}

// ---------------------------------------------------------------- determinism

Expect replayed() {
  return {[](Play& play) -> std::optional<std::string> {
            const Status same = replay(play.world().log(), play.world().engine().hash());
            return same ? std::nullopt : std::optional(same.error().message);
          },
          "", false};
}

Expect restored() {
  return {[](Play& play) -> std::optional<std::string> {
            const Engine& engine = play.world().engine();
            const auto copy = Engine::restore(engine.snapshot());
            copy->verify();
            if (copy->hash() != engine.hash()) return "the restored engine is in another state";
            return std::nullopt;
          },
          "", false};
}

}  // namespace

std::optional<Expect> read_special_expect(Words& words) {
  if (words.take_if("refused")) return refused(words, true);
  if (words.take_if("error")) return refused(words, false);
  if (words.take_if("dry-run")) return dry_run(words);
  if (words.take_if("tenant")) return tenant(words);
  if (words.take_if("node")) return node(words);
  if (words.take_if("replay")) return replayed();
  if (words.take_if("restore")) return restored();
  return std::nullopt;
}

}  // namespace gs::scenario
