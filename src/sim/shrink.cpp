#include "sim/shrink.hpp"

#include <algorithm>
#include <cctype>

#include "sim/apart.hpp"

namespace gs {
namespace {

// The place in the code and the condition; numbers and names after it differ from run to run.
std::string crash_of(const std::string& last_words) {
  const std::string line = last_words.substr(0, last_words.find('\n'));
  const std::size_t start = line.find("CHECK failed: ");
  if (start == std::string::npos) return "died: " + line.substr(0, 60);
  const std::size_t end = line.find(": ", start + 14);
  return "died: " + line.substr(0, end);
}

// Names and amounts differ from one attempt to the next; the words don't.
std::string without_numbers(const std::string& text) {
  std::string words;
  for (const char c : text.substr(0, text.find('\n')))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) words += c;
  return words;
}

// What is promised in a calm world is promised only there: estimates are right, nobody is evicted.
bool stays_calm(const Script& script) {
  bool configured = false;
  for (const Action& action : script.actions) {
    const auto* command = std::get_if<Command>(&action.what);
    const auto* submit = command == nullptr ? nullptr : std::get_if<SubmitJob>(command);
    if (submit != nullptr && submit->job.expected_runtime != action.runs) return false;
    const auto* set = command == nullptr ? nullptr : std::get_if<SetConfig>(command);
    if (set == nullptr) continue;
    const Config& c = set->config;
    configured = !c.preemption && !c.reclaim && !c.consolidation && c.reservations > 0;
  }
  return configured;
}

class Shrinker {
 public:
  Shrinker(Script script, const FailureOf& failure, const ShrinkLimits& limits,
           const std::function<void(std::size_t, int)>& progress)
      : best_(std::move(script)),
        failure_of_(failure),
        failure_(failure(best_)),
        limits_(limits),
        progress_(progress) {}

  Shrunk run() {
    if (!failure_.empty()) {
      int before = 0;
      forget_old_jobs();
      do {
        before = taken_;
        remove_chunks();
        simplify();
      } while (taken_ > before && left());
    }
    return {best_, failure_, attempts_, left()};
  }

 private:
  bool left() const {
    return attempts_ < limits_.max_attempts && (!limits_.stop || !limits_.stop());
  }

  bool take(Script candidate) {
    if (candidate.calm && !stays_calm(candidate)) return false;
    ++attempts_;
    if (failure_of_(candidate) != failure_) return false;
    best_ = std::move(candidate);
    ++taken_;
    if (progress_) progress_(best_.actions.size(), attempts_);
    return true;
  }

  // In a long story most jobs have long ended: perhaps only the last few matter. Says so in a few
  // attempts, where removing chunks takes hundreds.
  void forget_old_jobs() {
    const auto is_submit = [](const Action& action) {
      const auto* command = std::get_if<Command>(&action.what);
      return command != nullptr && std::holds_alternative<SubmitJob>(*command);
    };
    const auto jobs = std::count_if(best_.actions.begin(), best_.actions.end(), is_submit);
    for (std::ptrdiff_t kept = 16; kept < jobs && left(); kept *= 2) {
      Script candidate = best_;
      std::ptrdiff_t number = 0;
      std::erase_if(candidate.actions,
                    [&](const Action& a) { return is_submit(a) && ++number <= jobs - kept; });
      if (take(std::move(candidate))) return;
    }
  }

  void remove_chunks() {
    std::size_t chunk = std::max<std::size_t>(1, best_.actions.size() / 2);
    while (left()) {
      bool removed = false;
      for (std::size_t end = best_.actions.size(); end > 0 && left();) {
        const std::size_t begin = end > chunk ? end - chunk : 0;
        Script candidate = best_;
        candidate.actions.erase(candidate.actions.begin() + static_cast<std::ptrdiff_t>(begin),
                                candidate.actions.begin() + static_cast<std::ptrdiff_t>(end));
        removed |= take(std::move(candidate));
        end = begin;
      }
      if (chunk == 1 && !removed) return;
      if (!removed || chunk > best_.actions.size()) chunk = std::max<std::size_t>(1, chunk / 2);
    }
  }

  void simplify();

  template <typename Change>
  void attempt(std::size_t i, Change change) {
    if (!left() || i >= best_.actions.size()) return;
    Script candidate = best_;
    if (change(candidate.actions[i])) (void)take(std::move(candidate));
  }

  Script best_;
  const FailureOf& failure_of_;
  std::string failure_;
  const ShrinkLimits& limits_;
  int attempts_ = 0;
  int taken_ = 0;  // attempts that failed in the same way
  const std::function<void(std::size_t, int)>& progress_;
};

// Sets a field to what it usually is; false if it is that already.
template <typename T>
bool reset(T& field, const T& usual) {
  if (field == usual) return false;
  field = usual;
  return true;
}

using JobChange = bool (*)(Job&);
constexpr JobChange kJobChanges[] = {
    [](Job& j) { return reset(j.priority, 500); },
    [](Job& j) { return reset(j.min_runtime, Duration{}); },
    [](Job& j) { return reset(j.max_preemptions, 0); },
    [](Job& j) { return reset(j.disruption_budget, 0); },
    [](Job& j) { return reset(j.preemptible, true); },
    [](Job& j) { return reset(j.can_preempt_others, true); },
    [](Job& j) { return reset(j.checkpointable, false); },
    [](Job& j) { return reset(j.movable, false); },
    [](Job& j) { return reset(j.held, false); },
    [](Job& j) { return reset(j.arrived, -1); },
    [](Job& j) { return reset(j.start_timeout, {}); },
    [](Job& j) { return reset(j.max_runtime, {}); },
    [](Job& j) { return reset(j.expected_runtime, {}); },
    [](Job& j) { return reset(j.sets[0].topology, {}); },
    [](Job& j) { return j.groups.size() > 1 && (j.groups.pop_back(), true); },
    [](Job& j) { return j.groups.size() > 1 && (j.groups.erase(j.groups.begin()), true); },
};

using GroupChange = bool (*)(Group&);
constexpr GroupChange kGroupChanges[] = {
    [](Group& g) { return reset(g.count, 1); },
    [](Group& g) { return g.count > 1 && (--g.count, true); },
    [](Group& g) { return reset(g.min, 0); },
    [](Group& g) { return reset(g.slices, {}); },
    [](Group& g) { return reset(g.topology, {}); },
    [](Group& g) {
      return reset(g.request.resources, Resources{0, 0, g.request.resources.named});
    },
    [](Group& g) { return reset(g.request.resources, {}); },
    [](Group& g) { return reset(g.request.selector, {}); },
    [](Group& g) { return reset(g.request.affinity, {}); },
    [](Group& g) { return reset(g.request.preferred_affinity, {}); },
    [](Group& g) { return reset(g.request.tolerations, {}); },
    [](Group& g) { return reset(g.request.rdma, Wish::None); },
    [](Group& g) { return reset(g.request.cufile, Wish::None); },
    [](Group& g) { return reset(g.request.min_network_gbps, 0); },
    [](Group& g) { return reset(g.request.strategy, Strategy::Default); },
    [](Group& g) { return reset(g.request.preferred_domain, {}); },
    [](Group& g) { return reset(g.request.latency_sensitive, false); },
    [](Group& g) { return reset(g.request.gpu.policy, DevicePolicy::Best); },
    [](Group& g) { return reset(g.request.gpu.topology, TopologyMode::Ignore); },
    [](Group& g) { return reset(g.request.gpu.models, {}); },
    [](Group& g) { return reset(g.request.gpu.min_memory_mib, std::int64_t{0}); },
    [](Group& g) { return reset(g.request.gpu, {}); },
    [](Group& g) {
      GpuRequest whole;
      whole.count = 1;
      return g.request.gpu != GpuRequest{} && reset(g.request.gpu, whole);
    },
};

using NodeChange = bool (*)(Node&);
constexpr NodeChange kNodeChanges[] = {
    [](Node& n) { return reset(n.labels, {}); },
    [](Node& n) { return reset(n.taints, {}); },
    [](Node& n) { return reset(n.fabric, {}); },
    [](Node& n) { return n.gpus.size() > 1 && (n.gpus.resize(n.gpus.size() / 2), true); },
    [](Node& n) { return n.gpus.size() > 1 && (n.gpus.pop_back(), true); },
};

using ConfigChange = bool (*)(Config&);
constexpr ConfigChange kConfigChanges[] = {
    [](Config& c) { return reset(c.strategy, Strategy::Balanced); },
    [](Config& c) { return reset(c.implicit_topology, true); },
    [](Config& c) { return reset(c.aging_per_hour, 60.0); },
    [](Config& c) { return reset(c.usage_half_life, hours(24)); },
    [](Config& c) { return reset(c.reservations, 0); },
    [](Config& c) { return reset(c.preemption, false); },
    [](Config& c) { return reset(c.reclaim, false); },
    [](Config& c) { return reset(c.consolidation, false); },
    [](Config& c) { return reset(c.thermal_aware, true); },
    [](Config& c) { return reset(c.max_nodes_per_leaf, 0); },
    [](Config& c) { return reset(c.max_gpus_per_leaf, 0); },
    [](Config& c) { return reset(c.max_queue, std::int64_t{0}); },
};

template <typename T>
T* in(Action& action) {
  auto* command = std::get_if<Command>(&action.what);
  return command == nullptr ? nullptr : std::get_if<T>(command);
}

void Shrinker::simplify() {
  for (std::size_t i = 0; i < best_.actions.size() && left(); ++i) {
    const Instant before = i == 0 ? Instant{} : best_.actions[i - 1].at;
    const Duration gap = best_.actions[i].at - before;
    // Everything from here on comes earlier: at once, or after whole seconds.
    for (const Duration wanted : {Duration{}, Duration{gap.ms / 1000 * 1000}}) {
      if (wanted >= best_.actions[i].at - before || !left()) continue;
      Script candidate = best_;
      const Duration by = (candidate.actions[i].at - before) - wanted;
      for (std::size_t k = i; k < candidate.actions.size(); ++k)
        candidate.actions[k].at = candidate.actions[k].at - by;
      if (take(std::move(candidate))) break;
    }
    for (const JobChange change : kJobChanges)
      attempt(i, [&](Action& a) { return in<SubmitJob>(a) && change(in<SubmitJob>(a)->job); });
    for (std::size_t g = 0; g < 2; ++g)
      for (const GroupChange change : kGroupChanges)
        attempt(i, [&](Action& a) {
          auto* submit = in<SubmitJob>(a);
          return submit != nullptr && g < submit->job.groups.size() &&
                 change(submit->job.groups[g]);
        });
    for (const NodeChange change : kNodeChanges)
      attempt(i, [&](Action& a) { return in<PutNode>(a) && change(in<PutNode>(a)->node); });
    for (const ConfigChange change : kConfigChanges)
      attempt(i, [&](Action& a) { return in<SetConfig>(a) && change(in<SetConfig>(a)->config); });
    attempt(i, [](Action& a) {
      if (in<PutTenant>(a) == nullptr) return false;
      Tenant plain;
      plain.id = in<PutTenant>(a)->tenant.id;
      plain.parent = in<PutTenant>(a)->tenant.parent;
      const bool same = in<PutTenant>(a)->tenant.limit == plain.limit &&
                        in<PutTenant>(a)->tenant.guaranteed == plain.guaranteed;
      in<PutTenant>(a)->tenant = plain;
      return !same;
    });
  }
}

}  // namespace

std::string failure_of(const Script& script) {
  const ApartResult result = run_apart([&](volatile std::uint64_t*) {
    const std::optional<Finding> finding = play(script);
    return finding ? finding->checker + ": " + without_numbers(finding->text) : std::string{};
  });
  return result.died ? crash_of(result.last_words) : result.answer;
}

Shrunk shrink(Script script, const FailureOf& failure, const ShrinkLimits& limits,
              const std::function<void(std::size_t, int)>& progress) {
  return Shrinker(std::move(script), failure, limits, progress).run();
}

}  // namespace gs
