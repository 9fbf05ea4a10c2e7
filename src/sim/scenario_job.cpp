// The submit line, with the groups and sets under it.
#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario_words.hpp"

namespace gs::scenario {
namespace {

// What a submit line says: about the job, and about each of its groups unless they say otherwise.
struct Draft {
  ScriptedJob scripted;
  Group group;
  TopologyWish topology;
  int min_children = 0;
};

// What a group line says; the set by name.
struct GroupDraft {
  Group group;
  std::string set;
};

Wish wish(const Value& v) {
  return v.one_of<Wish>(
      {{"none", Wish::None}, {"preferred", Wish::Preferred}, {"required", Wish::Required}});
}

// "zone in a,b", "zone not-in a", "gpu-gen > 3", "ssd exists"; several joined by "and".
LabelTerms label_terms(const Value& v) {
  LabelTerms terms;
  std::vector<std::string> words = v.list(' ');
  for (std::size_t i = 0; i < words.size();) {
    if (words[i] == "and") ++i;
    if (i + 1 >= words.size()) {
      v.fail(fmt::format("'{}' is not a term such as \"zone in a,b\"", v.text()));
      return terms;
    }
    LabelTerm term;
    term.key = words[i++];
    term.op = v.with(words[i++])
                  .one_of<LabelOp>({{"in", LabelOp::In},
                                    {"not-in", LabelOp::NotIn},
                                    {"exists", LabelOp::Exists},
                                    {"not-exists", LabelOp::NotExists},
                                    {">", LabelOp::Gt},
                                    {"<", LabelOp::Lt}});
    const bool bare = term.op == LabelOp::Exists || term.op == LabelOp::NotExists;
    if (!bare && i < words.size()) term.values = v.with(words[i++]).list();
    if (!bare && term.values.empty()) v.fail(fmt::format("'{}' lacks a value", v.text()));
    terms.push_back(std::move(term));
  }
  return terms;
}

// "10 zone in a": weight, then terms.
PreferredTerms preferred_terms(const Value& v) {
  const std::size_t space = v.text().find(' ');
  if (space == std::string::npos) {
    v.fail("a preference is a weight and terms: \"10 zone in a\"");
    return {};
  }
  return {v.with(v.text().substr(0, space)).integer(),
          label_terms(v.with(v.text().substr(space + 1)))};
}

// "key=value:NoSchedule", "key=value", "key", "*".
Toleration toleration(const Value& v) {
  Toleration t;
  const auto [what, effect] = v.split(':');
  if (!effect.empty()) {
    t.any_effect = false;
    t.effect =
        v.with(effect).one_of<TaintEffect>({{"NoSchedule", TaintEffect::NoSchedule},
                                            {"PreferNoSchedule", TaintEffect::PreferNoSchedule},
                                            {"NoExecute", TaintEffect::NoExecute}});
  }
  const std::size_t equals = what.find('=');
  t.key = what == "*" ? "" : what.substr(0, equals);
  t.exists = equals == std::string::npos;
  if (!t.exists) t.value = what.substr(equals + 1);
  return t;
}

// "n1:0,1": exactly these devices.
void pin(TaskRequest& r, const Value& v) {
  const auto [node, ids] = v.split(':');
  r.only_nodes = {node};
  r.gpu.pinned_ids = v.with(ids).numbers();
  r.gpu.count = static_cast<int>(r.gpu.pinned_ids.size());
}

void share(TaskRequest& r) {
  r.gpu.sharing = Sharing::Shared;
  if (r.gpu.count == 0) r.gpu.count = 1;
}

void mig(TaskRequest& r, const Value& v) {
  r.gpu.sharing = Sharing::Mig;
  for (const std::string& one : v.list()) {
    const std::size_t colon = one.find(':');
    r.gpu.mig.push_back({one.substr(0, colon),
                         colon == std::string::npos ? 1 : v.with(one.substr(colon + 1)).integer()});
  }
}

constexpr Field<TaskRequest> kRequest[] = {
    {"gpus", [](TaskRequest& r, const Value& v) { r.gpu.count = v.integer(); }},
    {"fraction",
     [](TaskRequest& r, const Value& v) {
       r.gpu.milli = static_cast<int>(std::min<std::int64_t>(v.milli(), 1'000'000));
       share(r);
     }},
    {"gpu-memory",
     [](TaskRequest& r, const Value& v) {
       r.gpu.memory_mib = v.mib();
       share(r);
     }},
    {"mig", mig},
    {"models", [](TaskRequest& r, const Value& v) { r.gpu.models = v.list(); }},
    {"min-gpu-memory", [](TaskRequest& r, const Value& v) { r.gpu.min_memory_mib = v.mib(); }},
    {"policy",
     [](TaskRequest& r, const Value& v) {
       r.gpu.policy = v.one_of<DevicePolicy>({{"best", DevicePolicy::Best},
                                              {"contiguous", DevicePolicy::Contiguous},
                                              {"spread", DevicePolicy::Spread},
                                              {"preferIds", DevicePolicy::PreferIds}});
     }},
    {"prefer-ids",
     [](TaskRequest& r, const Value& v) {
       r.gpu.policy = DevicePolicy::PreferIds;
       r.gpu.prefer_ids = v.numbers();
     }},
    {"links",
     [](TaskRequest& r, const Value& v) {
       r.gpu.topology = v.one_of<TopologyMode>({{"ignore", TopologyMode::Ignore},
                                                {"preferred", TopologyMode::Preferred},
                                                {"required", TopologyMode::Required}});
     }},
    {"min-bandwidth",
     [](TaskRequest& r, const Value& v) { r.gpu.min_bandwidth_gbps = v.integer(); }},
    {"pin", pin},
    {"pin-group", [](TaskRequest& r, const Value& v) { r.gpu.pin_group = v.text(); }},
    {"cpu", [](TaskRequest& r, const Value& v) { r.resources.cpu_milli = v.milli(); }},
    {"memory", [](TaskRequest& r, const Value& v) { r.resources.memory_bytes = v.bytes(); }},
    {"resource",
     [](TaskRequest& r, const Value& v) {
       const auto [name, amount] = v.split(':');
       r.resources.named.push_back({name, v.with(amount).number()});
     }},
    {"selector",
     [](TaskRequest& r, const Value& v) {
       for (const std::string& one : v.list()) {
         const std::size_t colon = std::min(one.size(), one.find(':'));
         set_label(r.selector, one.substr(0, colon), one.substr(std::min(one.size(), colon + 1)));
       }
     }},
    {"affinity", [](TaskRequest& r, const Value& v) { r.affinity.push_back(label_terms(v)); }},
    {"prefer",
     [](TaskRequest& r, const Value& v) { r.preferred_affinity.push_back(preferred_terms(v)); }},
    {"tolerate", [](TaskRequest& r, const Value& v) { r.tolerations.push_back(toleration(v)); }},
    {"nodes", [](TaskRequest& r, const Value& v) { r.only_nodes = v.list(); }},
    {"rdma", [](TaskRequest& r, const Value& v) { r.rdma = wish(v); }},
    {"cufile", [](TaskRequest& r, const Value& v) { r.cufile = wish(v); }},
    {"min-network", [](TaskRequest& r, const Value& v) { r.min_network_gbps = v.integer(); }},
    {"strategy",
     [](TaskRequest& r, const Value& v) {
       r.strategy = v.one_of<Strategy>({{"default", Strategy::Default},
                                        {"balanced", Strategy::Balanced},
                                        {"consolidated", Strategy::Consolidated},
                                        {"distributed", Strategy::Distributed}});
     }},
    {"preferred-domain", [](TaskRequest& r, const Value& v) { r.preferred_domain = v.text(); }},
    {"latency-sensitive", [](TaskRequest& r, const Value& v) { r.latency_sensitive = v.flag(); }},
};

constexpr Field<Group> kGroup[] = {
    {"tasks", [](Group& g, const Value& v) { g.count = v.integer(); }},
    {"min",
     [](Group& g, const Value& v) { g.min = v.text() == "none" ? kNoMinimum : v.integer(); }},
    {"slice",
     [](Group& g, const Value& v) {
       const auto [level, size] = v.split(':');
       g.slices.push_back({level, v.with(size).integer()});
     }},
};

constexpr Field<TopologyWish> kTopology[] = {
    {"required", [](TopologyWish& t, const Value& v) { t.required_level = v.text(); }},
    {"preferred", [](TopologyWish& t, const Value& v) { t.preferred_level = v.text(); }},
};

constexpr Field<ScriptedJob> kJob[] = {
    {"tenant", [](ScriptedJob& j, const Value& v) { j.job.tenant = v.text(); }},
    {"name", [](ScriptedJob& j, const Value& v) { j.job.name = v.text(); }},
    {"priority", [](ScriptedJob& j, const Value& v) { j.job.priority = v.integer(); }},
    {"runtime", [](ScriptedJob& j, const Value& v) { j.job.expected_runtime = v.duration(); }},
    {"max-runtime", [](ScriptedJob& j, const Value& v) { j.job.max_runtime = v.duration(); }},
    {"duration", [](ScriptedJob& j, const Value& v) { j.duration = v.duration(); }},
    {"min-runtime", [](ScriptedJob& j, const Value& v) { j.job.min_runtime = v.duration(); }},
    {"allow-preemption", [](ScriptedJob& j, const Value& v) { j.job.preemptible = v.flag(); }},
    {"can-preempt-others",
     [](ScriptedJob& j, const Value& v) { j.job.can_preempt_others = v.flag(); }},
    {"max-preemptions",
     [](ScriptedJob& j, const Value& v) { j.job.max_preemptions = v.integer(); }},
    {"checkpointable", [](ScriptedJob& j, const Value& v) { j.job.checkpointable = v.flag(); }},
    {"movable", [](ScriptedJob& j, const Value& v) { j.job.movable = v.flag(); }},
    {"start-timeout", [](ScriptedJob& j, const Value& v) { j.job.start_timeout = v.duration(); }},
    {"disruption-budget",
     [](ScriptedJob& j, const Value& v) { j.job.disruption_budget = v.integer(); }},
    {"arrived", [](ScriptedJob& j, const Value& v) { j.job.arrived = v.integer(); }},
    {"held", [](ScriptedJob& j, const Value& v) { j.job.held = v.flag(); }},
    {"labels",
     [](ScriptedJob& j, const Value& v) {
       for (const std::string& one : v.list()) {
         const std::size_t colon = std::min(one.size(), one.find(':'));
         set_label(j.job.labels, one.substr(0, colon), one.substr(std::min(one.size(), colon + 1)));
       }
     }},
};

constexpr Field<Draft> kMinChildren[] = {
    {"min-children", [](Draft& d, const Value& v) { d.min_children = v.integer(); }},
};

constexpr Field<GroupDraft> kGroupSet[] = {
    {"set", [](GroupDraft& g, const Value& v) { g.set = v.text(); }},
};

constexpr Field<GroupSet> kSet[] = {
    {"required", [](GroupSet& s, const Value& v) { s.topology.required_level = v.text(); }},
    {"preferred", [](GroupSet& s, const Value& v) { s.topology.preferred_level = v.text(); }},
    {"min-children", [](GroupSet& s, const Value& v) { s.min_children = v.integer(); }},
};

// The keys of several tables on one line: each table gets the words that it knows.
class Sorter {
 public:
  explicit Sorter(const Line& line) : line_(line) {}

  template <typename T, std::size_t N>
  void take(const Field<T> (&fields)[N], T& target) {
    for (const auto& field : fields) known_.emplace_back(field.key);
    Line part{line_.number, line_.text, {}};
    for (std::size_t i = 2; i < line_.words.size(); ++i) {
      const Word& word = line_.words[i];
      const std::string& key = word.pair() ? word.key : word.value;
      for (const auto& field : fields)
        if (key == field.key && !word.quoted) part.words.push_back(word);
    }
    if (Status s = apply<T>(part, 0, fields, target); !s && status_.ok()) status_ = s;
  }

  Status done() const {
    for (std::size_t i = 2; i < line_.words.size(); ++i) {
      const Word& word = line_.words[i];
      const std::string& key = word.pair() ? word.key : word.value;
      if (word.quoted || std::find(known_.begin(), known_.end(), key) == known_.end())
        return at_line(line_.number, unknown("key", key, known_));
    }
    return status_;
  }

 private:
  const Line& line_;
  std::vector<std::string> known_;
  Status status_ = ok_status();
};

Status read_set(const Line& line, Job& job) {
  GroupSet set;
  set.name = line.words[1].value;
  std::string parent;
  Line rest = line;
  std::erase_if(rest.words, [&](const Word& word) {
    if (word.key == "parent") parent = word.value;
    return word.key == "parent";
  });
  if (Status s = apply<GroupSet>(rest, 2, kSet, set); !s) return s;
  set.parent = -1;
  for (std::size_t i = 0; i < job.sets.size(); ++i)
    if (job.sets[i].name == parent) set.parent = static_cast<int>(i);
  if (set.parent < 0)
    return at_line(line.number, fmt::format("there is no set '{}' above", parent));
  job.sets.push_back(std::move(set));
  return ok_status();
}

Status read_group(const Line& line, const Group& base, Job& job) {
  GroupDraft draft{base, ""};
  draft.group.name = line.words[1].value;
  Sorter sorter(line);
  sorter.take(kGroup, draft.group);
  sorter.take(kTopology, draft.group.topology);
  sorter.take(kRequest, draft.group.request);
  sorter.take(kGroupSet, draft);
  if (Status s = sorter.done(); !s) return s;
  draft.group.set = -1;
  for (std::size_t i = 0; i < job.sets.size(); ++i)
    if (job.sets[i].name == draft.set) draft.group.set = static_cast<int>(i);
  if (draft.group.set < 0)
    return at_line(line.number, fmt::format("there is no set '{}' above", draft.set));
  job.groups.push_back(std::move(draft.group));
  return ok_status();
}

Status read_body(const Block& block, const Group& base, Job& job) {
  for (const Line& line : block.body) {
    const std::string& verb = line.words[0].value;
    if (verb != "group" && verb != "set")
      return at_line(line.number, unknown("line", verb, {"group", "set"}));
    if (line.words.size() < 2 || line.words[1].pair())
      return at_line(line.number, verb + " needs a name");
    if (Status s = verb == "set" ? read_set(line, job) : read_group(line, base, job); !s) return s;
  }
  return ok_status();
}

}  // namespace

Result<ScriptedJob> read_job(const Block& block) {
  Draft draft;
  Job& job = draft.scripted.job;
  job.id = block.head.words[1].value;
  Sorter sorter(block.head);
  sorter.take(kJob, draft.scripted);
  sorter.take(kGroup, draft.group);
  sorter.take(kTopology, draft.topology);
  sorter.take(kRequest, draft.group.request);
  sorter.take(kMinChildren, draft);
  if (Status s = sorter.done(); !s) return s.error();
  if (job.name.empty()) job.name = job.id;
  if (Status s = read_body(block, draft.group, job); !s) return s.error();
  if (job.groups.empty()) {
    draft.group.topology = draft.topology;
    job.groups.push_back(draft.group);
  } else {
    job.sets[0].topology = draft.topology;
  }
  job.sets[0].min_children = draft.min_children;
  if (!draft.scripted.duration) draft.scripted.duration = job.expected_runtime;
  return draft.scripted;
}

void add_job_keys(std::vector<std::string>& keys) {
  const auto add = [&](const std::string& verb, const auto& fields) {
    for (const auto& field : fields) keys.push_back(verb + " " + field.key);
  };
  add("submit", kJob);
  add("submit", kGroup);
  add("submit", kTopology);
  add("submit", kRequest);
  add("submit", kMinChildren);
  add("group", kGroupSet);
  add("set", kSet);
  keys.push_back("set parent");
}

std::vector<std::string> scenario_keys() {
  std::vector<std::string> keys;
  add_cluster_keys(keys);
  add_job_keys(keys);
  return keys;
}

}  // namespace gs::scenario
