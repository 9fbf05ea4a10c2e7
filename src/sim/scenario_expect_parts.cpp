// Clauses about where tasks lie together, and about the parts of an explanation.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/describe.hpp"
#include "sim/scenario_expect.hpp"

namespace gs::scenario {
namespace {

std::optional<std::string> unknown_level(Play& play, const std::string& level) {
  const DomainTree& domains = play.world().engine().cluster().domains();
  if (level == "island" || level == "numa" || domains.level_index(level)) return std::nullopt;
  return "there is no level " + level;
}

// The domain of a level that a task lies in; its islands or NUMA nodes inside the machine.
std::set<std::string> domains_of(Play& play, const TaskPlace& place, const std::string& level) {
  const Cluster& cluster = play.world().engine().cluster();
  const NodeState& node = cluster.node(cluster.find_node(place.node));
  if (level == "island" || level == "numa") {
    std::set<std::string> all;
    for (const int id : place.gpus) {
      const Gpu& gpu = node.spec.gpus[static_cast<std::size_t>(id)];
      all.insert(place.node + "/" + (level == "numa" ? std::to_string(gpu.numa) : gpu.island));
    }
    return all;
  }
  const auto index = cluster.domains().level_index(level);
  if (!index || *index == cluster.domains().depth()) return {place.node};
  return {cluster.domains().path(cluster.domains().ancestor(node.domain, *index))};
}

// Neighbours under one parent.
bool adjacent(Play& play, const std::vector<TaskPlace>& places, const std::string& level) {
  const Cluster& cluster = play.world().engine().cluster();
  const auto index = cluster.domains().level_index(level);
  if (!index || *index >= cluster.domains().depth()) return false;
  std::set<DomainId> parents;
  std::set<int> positions;
  for (const TaskPlace& place : places) {
    const DomainId domain =
        cluster.domains().ancestor(cluster.node(cluster.find_node(place.node)).domain, *index);
    parents.insert(cluster.domains().at(domain).parent);
    positions.insert(cluster.domains().at(domain).position);
  }
  return parents.size() == 1 &&
         *positions.rbegin() - *positions.begin() + 1 == static_cast<int>(positions.size());
}

// "total>=0.5", "affinity=2": the part before the sign, the sign, the number.
struct Bound {
  std::string key, sign;
  double number = 0;
  bool holds(double actual) const {
    constexpr double kNear = 1e-9;
    if (sign == "=") return std::abs(actual - number) <= kNear;
    if (sign == ">=") return actual >= number - kNear;
    if (sign == "<=") return actual <= number + kNear;
    return sign == ">" ? actual > number + kNear : actual < number - kNear;
  }
};

std::vector<Bound> take_bounds(Words& words) {
  std::vector<Bound> bounds;
  for (const Word& word : words.take_pairs()) {
    std::string problem;
    Bound bound{word.key, "=", 0};
    std::string number = word.value;
    if (!word.pair()) {
      const std::size_t at = word.value.find_first_of("<>");
      const std::size_t width = at + 1 < word.value.size() && word.value[at + 1] == '=' ? 2 : 1;
      bound.key = word.value.substr(0, at);
      bound.sign = word.value.substr(at, width);
      number = word.value.substr(at + width);
    }
    bound.number = Value(number, problem).decimal();
    if (!problem.empty()) words.fail(problem);
    bounds.push_back(bound);
  }
  if (bounds.empty()) words.fail("values are missing, such as total>=0.5");
  return bounds;
}

void check_keys(const std::vector<Bound>& bounds, const std::vector<std::string>& known,
                Words& words) {
  for (const Bound& bound : bounds)
    if (std::find(known.begin(), known.end(), bound.key) == known.end())
      words.fail(unknown("key", bound.key, known));
}

std::optional<std::string> compare(const std::vector<Bound>& bounds,
                                   const std::map<std::string, double>& actual) {
  bool good = true;
  for (const Bound& bound : bounds) {
    const auto value = actual.find(bound.key);
    good &= bound.holds(value == actual.end() ? 0.0 : value->second);
  }
  if (good) return std::nullopt;
  std::string text;
  for (const auto& [key, value] : actual)
    text += fmt::format("{}{}={:g}", text.empty() ? "" : " ", key, value);
  return text.empty() ? "nothing of the kind" : text;
}

}  // namespace

Check in_clause(const TaskSubject& subject, Words& words) {
  const int count = words.value("a number").integer();
  const bool neighbours = words.take_if("adjacent");
  const std::string level = words.take("a level");
  return [=](Play& play) -> std::optional<std::string> {
    if (auto problem = unknown_level(play, level)) return problem;
    std::set<std::string> domains;
    const std::vector<TaskPlace> places = places_of(play, subject);
    for (const TaskPlace& place : places) domains.merge(domains_of(play, place, level));
    const bool good =
        static_cast<int>(domains.size()) == count && (!neighbours || adjacent(play, places, level));
    if (good) return std::nullopt;
    return fmt::format("in {} {}: {}; {}", domains.size(), level, fmt::join(domains, " "),
                       play.describe_job(subject.job));
  };
}

Check packs_clause(const TaskSubject& subject, Words& words) {
  if (!words.take_if("of")) words.fail("write: packs of 4 in rack");
  const int size = words.value("a size").integer();
  if (!words.take_if("in")) words.fail("write: packs of 4 in rack");
  const std::string level = words.take("a level");
  if (size < 1) words.fail("a pack has at least one task");
  return [=](Play& play) -> std::optional<std::string> {
    if (auto problem = unknown_level(play, level)) return problem;
    std::map<std::pair<int, int>, std::set<std::string>> packs;
    for (const TaskPlace& place : places_of(play, subject))
      packs[{place.task.group, place.task.rank / size}].merge(domains_of(play, place, level));
    for (const auto& [pack, domains] : packs)
      if (domains.size() != 1)
        return fmt::format("pack {} lies in {}; {}", pack.second, fmt::join(domains, " "),
                           play.describe_job(subject.job));
    if (packs.empty()) return play.describe_job(subject.job);
    return std::nullopt;
  };
}

Check score_clause(const std::string& job, Words& words) {
  const std::vector<Bound> bounds = take_bounds(words);
  check_keys(bounds, {"total", "resources", "topology", "domain", "history", "affinity"}, words);
  return [=](Play& play) -> std::optional<std::string> {
    const auto e = play.world().engine().explain(job, play.world().now());
    if (!e || e->scores.empty()) return play.describe_job(job) + ", without a score card";
    const ScoreCard& card = e->scores.front();
    return compare(bounds, {{"total", card.total},
                            {"resources", card.resource_availability},
                            {"topology", card.topology_alignment},
                            {"domain", card.domain_utilization},
                            {"history", card.historical_performance},
                            {"affinity", card.affinity}});
  };
}

Check filters_clause(const std::string& job, Words& words) {
  const std::vector<Bound> bounds = take_bounds(words);
  check_keys(bounds, constraint_words(), words);
  return [=](Play& play) -> std::optional<std::string> {
    const std::optional<Why> why = reason_of(play, job);
    if (!why) return play.describe_job(job) + ", without a reason";
    std::map<std::string, double> actual;
    for (const FilterCount& f : why->filters) actual[to_string(f.filter)] = f.nodes;
    return compare(bounds, actual);
  };
}

Check best_clause(const std::string& job, Words& words) {
  std::string place;
  if (words.left() && !words.peek().pair() && !is_clause(words.peek().value) &&
      words.peek().value.find_first_of("<>") == std::string::npos)
    place = words.take("a node");
  const std::vector<Bound> bounds = place.empty() || (words.left() && words.peek().pair())
                                        ? take_bounds(words)
                                        : std::vector<Bound>{};
  check_keys(bounds, {"has", "needs"}, words);
  return [=](Play& play) -> std::optional<std::string> {
    const std::optional<Why> why = reason_of(play, job);
    if (!why || !why->best) return play.describe_job(job) + ", without a best candidate";
    const Candidate& best = *why->best;
    const auto differs = compare(bounds, {{"has", static_cast<double>(best.has)},
                                          {"needs", static_cast<double>(best.needs)}});
    if (!differs && (place.empty() || place == best.node)) return std::nullopt;
    return fmt::format("best {} has={} needs={} ({})", best.node, best.has, best.needs, best.of);
  };
}

Check quota_clause(const std::string& job, Words& words) {
  std::string tenant = words.take("a tenant");
  std::string resource = words.take("a resource");
  const std::vector<Bound> bounds =
      words.left() && words.peek().pair() ? take_bounds(words) : std::vector<Bound>{};
  check_keys(bounds, {"requested", "limit", "current"}, words);
  return [=](Play& play) -> std::optional<std::string> {
    std::optional<Why> why = reason_of(play, job);
    if (play.refusal() && play.refusal()->job == job) why = play.refusal()->why;
    if (!why || !why->quota) return play.describe_job(job) + ", without a quota";
    const QuotaState& q = *why->quota;
    const auto differs = compare(bounds, {{"requested", static_cast<double>(q.requested)},
                                          {"limit", static_cast<double>(q.limit)},
                                          {"current", static_cast<double>(q.current)}});
    if (!differs && q.tenant == tenant && q.resource == resource) return std::nullopt;
    return fmt::format("quota {} {} requested={} limit={} current={}", q.tenant, q.resource,
                       q.requested, q.limit, q.current);
  };
}

std::vector<std::string> state_words() {
  return {"waiting",  "held",      "starting", "running",   "evicting",
          "stopping", "completed", "failed",   "cancelled", "refused"};
}

bool is_state(const std::string& word) {
  const auto words = state_words();
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> constraint_words() {
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(Constraint::Invalid); ++i)
    words.emplace_back(to_string(static_cast<Constraint>(i)));
  return words;
}

bool is_constraint(const std::string& word) {
  const auto words = constraint_words();
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace gs::scenario
