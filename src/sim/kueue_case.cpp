#include "sim/kueue_case.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/gpu_mask.hpp"
#include "sim/case_check.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

const char* const kGpu = "gpu";  // a named resource where the GPUs are only a number: in a pool

std::string text_or(const Json& object, const char* key, const std::string& other) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? other : it->get<std::string>();
}

void add_named(Resources& resources, const std::string& name, std::int64_t amount) {
  for (NamedAmount& known : resources.named)
    if (known.name == name) {
      known.amount += amount;
      return;
    }
  resources.named.push_back({name, amount});
}

// Everything but the GPUs, which the caller takes as devices or as a number.
Resources read_resources(const Json& amounts, bool gpus_by_number) {
  Resources resources;
  for (const auto& [name, value] : amounts.items()) {
    const auto amount = value.get<std::int64_t>();
    if (name == "cpu_milli")
      resources.cpu_milli = amount;
    else if (name == "memory_bytes")
      resources.memory_bytes = amount;
    else if (name != kGpu || gpus_by_number)
      add_named(resources, name, amount);
  }
  return resources;
}

TaskRequest read_request(const Json& amounts, bool gpus_by_number) {
  TaskRequest request;
  request.resources = read_resources(amounts, gpus_by_number);
  if (!gpus_by_number) request.gpu.count = amounts.value(kGpu, 0);
  return request;
}

TaintEffect read_effect(const std::string& name) {
  if (name == "NoExecute") return TaintEffect::NoExecute;
  return name == "PreferNoSchedule" ? TaintEffect::PreferNoSchedule : TaintEffect::NoSchedule;
}

Toleration read_toleration(const Json& t) {
  Toleration toleration;
  toleration.key = text_or(t, "key", "");
  toleration.value = text_or(t, "value", "");
  toleration.exists = text_or(t, "operator", text_or(t, "op", "Equal")) == "Exists";
  const std::string effect = text_or(t, "effect", "");
  toleration.any_effect = effect.empty();
  if (!effect.empty()) toleration.effect = read_effect(effect);
  return toleration;
}

LabelTerm read_term(const Json& t) {
  static const std::map<std::string, LabelOp> kOps = {
      {"In", LabelOp::In},         {"NotIn", LabelOp::NotIn},
      {"Exists", LabelOp::Exists}, {"DoesNotExist", LabelOp::NotExists},
      {"Gt", LabelOp::Gt},         {"Lt", LabelOp::Lt}};
  LabelTerm term;
  term.key = t.at("key").get<std::string>();
  const auto op = kOps.find(text_or(t, "op", "In"));
  if (op == kOps.end()) throw Json::other_error::create(501, "unknown op in " + t.dump(), &t);
  term.op = op->second;
  if (t.contains("values")) term.values = t["values"].get<std::vector<std::string>>();
  return term;
}

// A list of expressions, all of which must hold; or a list of such lists, one of which must.
std::vector<LabelTerms> read_alternatives(const Json& list) {
  std::vector<LabelTerms> alternatives;
  if (list.empty()) return alternatives;
  if (!list.front().is_array()) alternatives.emplace_back();
  for (const Json& element : list) {
    if (!element.is_array()) {
      alternatives.back().push_back(read_term(element));
      continue;
    }
    alternatives.emplace_back();
    for (const Json& term : element) alternatives.back().push_back(read_term(term));
  }
  return alternatives;
}

void read_filters(const Json& g, TaskRequest& request) {
  for (const Json& t : g.value("tolerations", Json::array()))
    request.tolerations.push_back(read_toleration(t));
  const Json selector = g.value("node_selector", Json::object());
  for (const auto& [key, value] : selector.items())
    set_label(request.selector, key, value.get<std::string>());
  const Json affinity = g.value("affinity", Json::object());
  request.affinity = read_alternatives(affinity.value("required", Json::array()));
  for (const Json& p : affinity.value("preferred", Json::array()))
    request.preferred_affinity.push_back({p.at("weight").get<int>(), {read_term(p)}});
}

std::vector<std::string> keys_of(const TaskRequest& request) {
  std::vector<std::string> keys;
  for (const auto& label : request.selector) keys.push_back(label.first);
  for (const LabelTerms& terms : request.affinity)
    for (const LabelTerm& term : terms) keys.push_back(term.key);
  for (const PreferredTerms& preferred : request.preferred_affinity)
    for (const LabelTerm& term : preferred.terms) keys.push_back(term.key);
  return keys;
}

// What lies on the innermost level is a node to us, whatever the case calls it.
std::string level_name(const std::string& name, const std::string& innermost) {
  return name == innermost ? "node" : name;
}

// A group without a wish wants the smallest host that holds it, if there is one.
TopologyWish read_wish(const Json& topology, const std::string& innermost, bool slices) {
  const std::string mode = topology.at("mode").get<std::string>();
  const std::string level = level_name(text_or(topology, "level", ""), innermost);
  TopologyWish wish;
  if (mode == "required") wish.required_level = level;
  if (mode == "preferred") wish.preferred_level = level;
  if (mode == "unconstrained" && !slices) wish.preferred_level = "node";
  return wish;
}

std::vector<Slice> read_slices(const Json& g, const std::string& innermost) {
  std::vector<Slice> slices;
  const auto it = g.find("slice");
  if (it == g.end() || it->is_null()) return slices;
  for (const Json& s : it->is_array() ? *it : Json::array({*it}))
    slices.push_back(
        {level_name(s.at("level").get<std::string>(), innermost), s.at("size").get<int>()});
  return slices;
}

TaskLayout read_layout(const KueueCase& c, const Json& groups) {
  TaskLayout layout;
  for (const auto& [name, parts] : groups.items())
    for (const Json& part : parts) {
      const auto path = part.at("domain").get<DomainPath>();
      const KueueLeaf* leaf = c.find(path);
      layout[name][leaf != nullptr ? leaf->path : path] += part.at("count").get<int>();
    }
  return layout;
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  KueueCase read() {
    c_.levels = json_.at("levels").get<std::vector<std::string>>();
    if (c_.levels.empty()) throw std::runtime_error("levels must not be empty");
    c_.hosts = c_.levels.back() == "host";
    failed_ = text_or(json_, "failed_node", "");
    by_number_ = !c_.hosts;
    for (const Json& n : json_.at("nodes"))
      by_number_ = by_number_ || n.at("capacity").value(kGpu, 0) > kMaxGpusPerNode;
    for (const Json& n : json_.at("nodes")) read_node(n);
    for (const Json& u : json_.at("used")) read_use(u);
    for (const Json& g : json_.at("groups")) read_group(g);
    read_sets();
    const Json& expect = json_.at("expect");
    c_.feasible = expect.at("feasible").get<bool>();
    c_.compare = expect.at("compare").get<std::string>();
    c_.expected = read_layout(c_, expect.at("groups"));
    for (const Json& other : expect.value("any_of", Json::array()))
      c_.any_of.push_back(read_layout(c_, other));
    return std::move(c_);
  }

 private:
  void read_node(const Json& n) {
    DomainPath path;
    const Json& domain = n.at("domain");
    for (const std::string& level : c_.levels) {
      if (!domain.contains(level)) return;  // lacks a level: takes no part
      path.push_back(domain[level].get<std::string>());
    }
    const std::string name = n.at("name").get<std::string>();
    const bool ready = n.value("ready", true) && name != failed_;
    const bool cordoned = n.value("unschedulable", false);
    if (!c_.hosts && (!ready || cordoned)) return;
    leaf_of_node_[name] = path;
    KueueLeaf& leaf = leaf_at(path);
    Resources more = read_resources(n.at("capacity"), by_number_);
    leaf.node.capacity.cpu_milli += more.cpu_milli;
    leaf.node.capacity.memory_bytes += more.memory_bytes;
    for (const NamedAmount& named : more.named)
      add_named(leaf.node.capacity, named.name, named.amount);
    if (!c_.hosts) return;
    leaf.node.ready = ready;
    leaf.node.cordoned = cordoned;
    const Json labels = n.value("labels", Json::object());
    for (const auto& [key, value] : labels.items())
      set_label(leaf.node.labels, key, value.get<std::string>());
    for (std::size_t i = 0; i < path.size(); ++i)
      set_label(leaf.node.labels, c_.levels[i], path[i]);
    for (const Json& t : n.value("taints", Json::array()))
      leaf.node.taints.push_back({t.at("key").get<std::string>(), text_or(t, "value", ""),
                                  read_effect(t.at("effect").get<std::string>())});
    const int gpus = by_number_ ? 0 : n.at("capacity").value(kGpu, 0);
    for (int i = 0; i < gpus; ++i) {
      Gpu gpu;
      gpu.index = i;
      leaf.node.gpus.push_back(gpu);
    }
  }

  KueueLeaf& leaf_at(const DomainPath& path) {
    for (KueueLeaf& leaf : c_.leaves)
      if (leaf.path == path) return leaf;
    KueueLeaf leaf{path, {}};
    for (const std::string& part : path)
      leaf.node.name += (leaf.node.name.empty() ? "" : "/") + part;
    if (c_.hosts) leaf.node.name = path.back();
    leaf.node.domain = DomainPath(path.begin(), path.end() - 1);
    c_.leaves.push_back(std::move(leaf));
    return c_.leaves.back();
  }

  void read_use(const Json& u) {
    const std::string phase = u.at("phase").get<std::string>();
    if (phase != "running" && phase != "pending") return;
    DomainPath path;
    if (u.contains("domain"))
      path = u["domain"].get<DomainPath>();
    else
      path = leaf_of_node_[u.at("node").get<std::string>()];
    if (const KueueLeaf* leaf = c_.find(path))
      c_.used.push_back({leaf->path, read_request(u.at("resources"), by_number_)});
  }

  void read_group(const Json& g) {
    Group group;
    group.name = g.at("name").get<std::string>();
    group.count = g.at("count").get<int>();
    if (group.count == 0) return;  // nothing to place
    group.request = read_request(g.at("request"), by_number_);
    add_named(group.request.resources, "pods", 1);
    group.slices = read_slices(g, c_.levels.back());
    group.topology = read_wish(g.at("topology"), c_.levels.back(), !group.slices.empty());
    if (c_.hosts) read_filters(g, group.request);
    for (std::string& key : keys_of(group.request)) c_.keys.push_back(std::move(key));
    partner_[group.name] = text_or(g, "together_with", "");
    read_previous(g, group.slices.empty());
    c_.job.groups.push_back(std::move(group));
  }

  void read_previous(const Json& g, bool in_order_given) {
    std::vector<KueueCase::Kept>& kept = c_.previous[g.at("name").get<std::string>()];
    for (const Json& p : g.value("previous", Json::array())) {
      const auto path = p.at("domain").get<DomainPath>();
      const KueueLeaf* leaf = c_.find(path);
      const bool lost = leaf == nullptr || !leaf->node.ready || leaf->node.cordoned;
      kept.push_back({leaf != nullptr ? leaf->path : path, p.at("count").get<int>(), lost});
    }
    if (in_order_given) return;
    std::stable_sort(kept.begin(), kept.end(),
                     [](const auto& a, const auto& b) { return a.path < b.path; });
  }

  // Two groups that stand together become a set with the wish of the larger one.
  void read_sets() {
    for (std::size_t i = 0; i < c_.job.groups.size(); ++i) {
      Group& a = c_.job.groups[i];
      if (a.set != 0 || partner_[a.name].empty()) continue;
      for (std::size_t j = i + 1; j < c_.job.groups.size(); ++j) {
        Group& b = c_.job.groups[j];
        if (b.name != partner_[a.name]) continue;
        Group& workers = a.count >= b.count ? a : b;
        Group& leader = a.count >= b.count ? b : a;
        a.set = b.set = static_cast<int>(c_.job.sets.size());
        GroupSet set;
        set.name = a.name + "+" + b.name;
        set.parent = 0;
        set.topology = workers.topology;
        c_.job.sets.push_back(set);
        workers.topology = leader.topology = {};
        leader.slices.clear();
      }
    }
  }

  const Json& json_;
  KueueCase c_;
  std::string failed_;
  bool by_number_ = false;
  std::map<std::string, DomainPath> leaf_of_node_;
  std::map<std::string, std::string> partner_;
};

}  // namespace

const KueueLeaf* KueueCase::find(const DomainPath& path) const {
  for (const KueueLeaf& leaf : leaves)
    if (leaf.path == path || (hosts && path.size() == 1 && leaf.path.back() == path.front()))
      return &leaf;
  return nullptr;
}

KueueCase read_kueue_case(const nlohmann::json& c) {
  check_numbers(c);
  KueueCase read = Reader(c).read();
  check_case(read);
  return read;
}

}  // namespace gs
