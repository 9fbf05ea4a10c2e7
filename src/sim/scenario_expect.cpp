// What `expect` lines ask. A line is a subject and clauses; every clause has to hold.
#include "sim/scenario_expect.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/describe.hpp"
#include "sim/scenario.hpp"

namespace gs::scenario {

bool Words::next_is(const std::string& word) const {
  return left() && !peek().pair() && !peek().quoted && peek().value == word;
}

std::string Words::take(const std::string& what) {
  if (!left() || peek().pair()) {
    fail(what + " is missing");
    return {};
  }
  return line_.words[next_++].value;
}

bool Words::take_if(const std::string& word) {
  if (!next_is(word)) return false;
  ++next_;
  return true;
}

std::vector<std::string> Words::take_quoted() {
  std::vector<std::string> texts;
  while (left() && peek().quoted) texts.push_back(line_.words[next_++].value);
  return texts;
}

std::vector<Word> Words::take_pairs() {
  std::vector<Word> pairs;
  while (left() && (peek().pair() || peek().value.find_first_of("<>") != std::string::npos))
    pairs.push_back(line_.words[next_++]);
  return pairs;
}

Value Words::value(const std::string& what) { return Value(take(what), problem_); }

namespace {

struct Subject {
  std::string job;
  std::string group;  // empty: all
  int rank = -1;      // -1: all
};

Subject subject_of(Words& words) {
  std::string problem;
  const std::vector<std::string> path = words.value("a job").list('/');
  Subject subject;
  if (!path.empty()) subject.job = path[0];
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  for (std::size_t i = 1; i < path.size(); ++i) {
    if (is_number(path[i]))
      subject.rank = Value(path[i], problem).integer();
    else
      subject.group = path[i];
  }
  if (path.size() > 3 || !problem.empty())
    words.fail("a job is written job, job/rank or job/group/rank");
  return subject;
}

std::vector<TaskPlace> places_of(Play& play, const Subject& subject) {
  std::vector<TaskPlace> places = play.places(subject.job);
  const Cluster& cluster = play.world().engine().cluster();
  const JobId job = cluster.find_job(subject.job);
  std::erase_if(places, [&](const TaskPlace& place) {
    if (subject.rank >= 0 && place.task.rank != subject.rank) return true;
    if (subject.group.empty() || !job.valid()) return false;
    const auto& groups = cluster.shape_of(job).groups;
    return groups[static_cast<std::size_t>(place.task.group)].name != subject.group;
  });
  return places;
}

std::string state_of(Play& play, const std::string& job) {
  const auto known = play.jobs().find(job);
  return known == play.jobs().end() ? "" : known->second.state;
}

// The reason that a person would be shown: of a waiting job, or why it ended.
std::optional<Why> why_of(Play& play, const std::string& job) {
  if (const auto e = play.world().engine().explain(job, play.world().now()); e) return e->why;
  const auto known = play.jobs().find(job);
  return known == play.jobs().end() ? std::nullopt : known->second.why;
}

// ---------------------------------------------------------------- clauses

Check state_clause(const Subject& s, const std::string& state, bool wanted) {
  return [=](Play& play) -> std::optional<std::string> {
    if ((state_of(play, s.job) == state) == wanted) return std::nullopt;
    return play.describe_job(s.job);
  };
}

// "n1" any devices of the node; "n1:0-3" all of them and no others there; "n1:0/1g.10gb@4".
struct PlaceWish {
  std::string node;
  std::optional<std::vector<int>> gpus;
  std::string mig;  // the whole text of a place with MIG instances
};

PlaceWish place_wish(Words& words) {
  const std::string text = words.take("a place");
  PlaceWish wish;
  const std::size_t colon = text.rfind(':');
  wish.node = text.substr(0, colon);
  if (colon == std::string::npos) return wish;
  if (text.find('/', colon) != std::string::npos) {
    wish.mig = text;
    return wish;
  }
  std::string problem;
  wish.gpus = Value(text.substr(colon + 1), problem).numbers();
  if (!problem.empty()) words.fail(problem);
  return wish;
}

bool lies_there(const std::vector<TaskPlace>& places, const PlaceWish& wish) {
  std::set<int> gpus;
  bool any = false;
  for (const TaskPlace& place : places) {
    if (place.node != wish.node) continue;
    if (!wish.mig.empty() && describe(place) != wish.mig) continue;
    any = true;
    gpus.insert(place.gpus.begin(), place.gpus.end());
  }
  return any && (!wish.gpus || std::set<int>(wish.gpus->begin(), wish.gpus->end()) == gpus);
}

Check on_clause(const Subject& s, Words& words, bool wanted) {
  std::vector<PlaceWish> wishes;
  while (words.left() && !words.peek().pair() && !words.peek().quoted &&
         !is_clause(words.peek().value))
    wishes.push_back(place_wish(words));
  if (wishes.empty()) words.fail("places are missing: on n1:0-3 n2");
  return [=](Play& play) -> std::optional<std::string> {
    const std::vector<TaskPlace> places = places_of(play, s);
    bool good = true;
    for (const PlaceWish& wish : wishes) good &= lies_there(places, wish) == wanted;
    if (wanted)
      for (const TaskPlace& place : places)
        good &= std::any_of(wishes.begin(), wishes.end(),
                            [&](const PlaceWish& wish) { return wish.node == place.node; });
    if (good) return std::nullopt;
    return play.describe_job(s.job);
  };
}

Check with_clause(const Subject& s, Words& words) {
  const int count = words.value("a number of tasks").integer();
  if (!words.take_if("tasks") && !words.take_if("task")) words.fail("write: with 3 tasks");
  return [=](Play& play) -> std::optional<std::string> {
    const auto places = places_of(play, s);
    if (static_cast<int>(places.size()) == count) return std::nullopt;
    return fmt::format("{}; {}", plural(static_cast<long long>(places.size()), "task"),
                       play.describe_job(s.job));
  };
}

std::optional<std::string> missing_text(const std::string& sentence,
                                        const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    if (sentence.find(text) == std::string::npos) return text;
  return std::nullopt;
}

Check because_clause(const Subject& s, Words& words) {
  const std::string constraint = words.left() && words.peek().quoted ? "" : words.take("a reason");
  if (!constraint.empty() && !is_constraint(constraint))
    words.fail(unknown("reason", constraint, constraint_words()));
  const std::vector<std::string> texts = words.take_quoted();
  return [=](Play& play) -> std::optional<std::string> {
    const std::optional<Why> why = why_of(play, s.job);
    if (!why) return play.describe_job(s.job) + ", without a reason";
    const bool same = constraint.empty() || constraint == to_string(why->constraint);
    if (same && !missing_text(why->sentence, texts)) return std::nullopt;
    return fmt::format("{} because {} \"{}\"", play.describe_job(s.job), to_string(why->constraint),
                       why->sentence);
  };
}

Check verdict_clause(const Subject& s, Verdict verdict) {
  static constexpr const char* kWords[] = {"not now", "never", "broken"};
  return [=](Play& play) -> std::optional<std::string> {
    const std::optional<Why> why = why_of(play, s.job);
    if (why && why->verdict == verdict) return std::nullopt;
    return play.describe_job(s.job) +
           (why ? std::string(", ") + kWords[static_cast<int>(why->verdict)]
                : ", without a reason");
  };
}

Check starts_clause(const Subject& s, Words& words) {
  const bool known = words.take_if("at");
  Instant at;
  if (known)
    at = Instant{words.value("a time").duration().ms};
  else if (!words.take_if("unknown"))
    words.fail("write: starts at 1h, or: starts unknown");
  std::vector<std::string> nodes;
  if (known && words.take_if("on")) nodes = words.value("nodes").list();
  return [=](Play& play) -> std::optional<std::string> {
    const auto e = play.world().engine().explain(s.job, play.world().now());
    const std::optional<Instant> start = e ? e->expected_start : std::nullopt;
    const bool is_known = start && !start->is_never();
    bool good = is_known == known && (!known || *start == at);
    std::string actual = is_known ? "starts at " + describe(*start) : "start unknown";
    if (!nodes.empty()) {
      std::vector<std::string> reserved;
      if (e && e->why && e->why->reservation) reserved = e->why->reservation->nodes;
      actual += fmt::format(" on {}", fmt::join(reserved, ","));
      good &= std::is_permutation(nodes.begin(), nodes.end(), reserved.begin(), reserved.end());
    }
    if (good) return std::nullopt;
    return actual + "; " + play.describe_job(s.job);
  };
}

Check instant_clause(const Subject& s, Words& words, bool start) {
  if (!words.take_if("at")) words.fail("write: started at 10m");
  const Instant at{words.value("a time").duration().ms};
  return [=](Play& play) -> std::optional<std::string> {
    const auto known = play.jobs().find(s.job);
    std::optional<Instant> actual;
    if (known != play.jobs().end()) actual = start ? known->second.started : known->second.ended;
    if (actual && *actual == at) return std::nullopt;
    return (actual ? "at " + describe(*actual) : std::string("not at all")) + "; " +
           play.describe_job(s.job);
  };
}

Check before_clause(const Subject& s, Words& words) {
  const std::string other = words.take("another job");
  return [=](Play& play) -> std::optional<std::string> {
    const auto order = [&](const std::string& job) {
      const auto known = play.jobs().find(job);
      return known == play.jobs().end() ? std::size_t{0} : known->second.start_order;
    };
    const std::size_t mine = order(s.job);
    if (mine > 0 && (order(other) == 0 || mine < order(other))) return std::nullopt;
    return play.describe_job(s.job) + "; " + play.describe_job(other);
  };
}

std::string describe_stops(const JobHistory& history) {
  std::string text;
  for (const auto& stop : history.stops)
    text += fmt::format("{}{} {} at {}{}", text.empty() ? "" : "; ", to_string(stop.reason),
                        plural(stop.tasks, "task"), describe(stop.at),
                        stop.for_job.empty() ? "" : " for " + stop.for_job);
  return text.empty() ? "never stopped" : text;
}

Check evicted_clause(const Subject& s, Words& words, bool wanted) {
  int tasks = -1;
  std::string reason;
  std::string for_job;
  if (words.left() && !words.peek().pair() && !words.peek().value.empty() &&
      std::isdigit(static_cast<unsigned char>(words.peek().value[0])) != 0) {
    tasks = words.value("a number of tasks").integer();
    if (!words.take_if("tasks") && !words.take_if("task")) words.fail("write: evicted 2 tasks");
  }
  while (words.next_is("for") || words.next_is("as")) {
    if (words.take_if("for"))
      for_job = words.take("a job");
    else if (words.take_if("as"))
      reason = words.take("a reason");
  }
  return [=](Play& play) -> std::optional<std::string> {
    const auto known = play.jobs().find(s.job);
    static const JobHistory nothing;
    const JobHistory& history = known == play.jobs().end() ? nothing : known->second;
    const bool any = std::any_of(history.stops.begin(), history.stops.end(), [&](const auto& stop) {
      return (tasks < 0 || stop.tasks == tasks) && (for_job.empty() || stop.for_job == for_job) &&
             (reason.empty() || reason == to_string(stop.reason));
    });
    if (any == wanted) return std::nullopt;
    return s.job + ": " + describe_stops(history);
  };
}

// ---------------------------------------------------------------- the table of clauses

struct Clause {
  const char* word;
  Check (*read)(const Subject&, Words&);
};

Check not_clause(const Subject& s, Words& words) {
  if (words.take_if("on")) return on_clause(s, words, false);
  if (words.take_if("evicted")) return evicted_clause(s, words, false);
  const std::string state = words.take("a state");
  if (!is_state(state)) words.fail(unknown("state", state, state_words()));
  return state_clause(s, state, false);
}

constexpr Clause kClauses[] = {
    {"not", not_clause},
    {"on", [](const Subject& s, Words& w) { return on_clause(s, w, true); }},
    {"with", with_clause},
    {"because", because_clause},
    {"never", [](const Subject& s, Words&) { return verdict_clause(s, Verdict::Never); }},
    {"not-now", [](const Subject& s, Words&) { return verdict_clause(s, Verdict::NotNow); }},
    {"broken", [](const Subject& s, Words&) { return verdict_clause(s, Verdict::Broken); }},
    {"starts", starts_clause},
    {"started", [](const Subject& s, Words& w) { return instant_clause(s, w, true); }},
    {"ended", [](const Subject& s, Words& w) { return instant_clause(s, w, false); }},
    {"before", before_clause},
    {"evicted", [](const Subject& s, Words& w) { return evicted_clause(s, w, true); }},
    {"in",
     [](const Subject& s, Words& w) {
       return in_clause({s.job, s.group, s.rank}, w);
     }},
    {"packs",
     [](const Subject& s, Words& w) {
       return packs_clause({s.job, s.group, s.rank}, w);
     }},
    {"score", [](const Subject& s, Words& w) { return score_clause(s.job, w); }},
    {"filters", [](const Subject& s, Words& w) { return filters_clause(s.job, w); }},
    {"best", [](const Subject& s, Words& w) { return best_clause(s.job, w); }},
    {"quota", [](const Subject& s, Words& w) { return quota_clause(s.job, w); }},
};

Check read_clause(const Subject& s, Words& words) {
  const std::string word = words.take("a clause");
  if (is_state(word)) return state_clause(s, word, true);
  for (const Clause& clause : kClauses)
    if (word == clause.word) return clause.read(s, words);
  std::vector<std::string> known = state_words();
  for (const Clause& clause : kClauses) known.emplace_back(clause.word);
  words.fail(unknown("clause", word, known));
  return {};
}

Expect all_of(std::vector<Check> checks, std::string subject) {
  return {[checks = std::move(checks)](Play& play) -> std::optional<std::string> {
            for (const Check& check : checks)
              if (auto actual = check(play)) return actual;
            return std::nullopt;
          },
          std::move(subject), false};
}

}  // namespace

bool is_clause(const std::string& word) {
  return is_state(word) || std::any_of(std::begin(kClauses), std::end(kClauses),
                                       [&](const Clause& clause) { return word == clause.word; });
}

std::vector<TaskPlace> places_of(Play& play, const TaskSubject& subject) {
  return places_of(play, Subject{subject.job, subject.group, subject.rank});
}
std::optional<Why> reason_of(Play& play, const std::string& job) { return why_of(play, job); }

Result<Expect> read_expect(const Line& line) {
  Words words(line, 1);
  if (auto special = read_special_expect(words)) {
    if (words.left()) words.fail("'" + words.peek().value + "' is too much");
    if (!words.problem().empty()) return at_line(line.number, words.problem());
    return *special;
  }
  const Subject subject = subject_of(words);
  std::vector<Check> checks;
  while (words.left() && words.problem().empty()) checks.push_back(read_clause(subject, words));
  if (checks.empty()) words.fail("what is expected of it?");
  if (!words.problem().empty()) return at_line(line.number, words.problem());
  return all_of(std::move(checks), subject.job);
}

}  // namespace gs::scenario
