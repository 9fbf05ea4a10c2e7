#include "sim/kai_case.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"
#include "sim/case_check.hpp"

namespace gs {
namespace {

using Json = nlohmann::json;

constexpr const char* kSingleMig = "mig-single";  // taint: whole devices only

std::string text(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string{};
}

// Milli of a number that may be null (unlimited) or missing.
std::int64_t scaled(const Json& j, const char* key, int factor) {
  if (!j.contains(key) || j[key].is_null()) return kUnlimited;
  return std::llround(j[key].get<double>() * factor);
}

// The levels of all topologies, outermost first: those of several are merged where a level of the
// one nests in a level of the other.
std::vector<std::string> read_levels(const Json& c) {
  std::vector<std::string> levels;
  if (!c.contains("topologies")) return levels;
  const auto values = [&](const std::string& label) {
    std::set<std::string> seen;
    for (const Json& node : c.at("nodes"))
      if (node.at("labels").contains(label)) seen.insert(node["labels"][label]);
    return seen.size();
  };
  for (const auto& [name, list] : c.at("topologies").items())
    for (const auto& level : list.get<std::vector<std::string>>())
      if (std::find(levels.begin(), levels.end(), level) == levels.end()) levels.push_back(level);
  if (c.at("topologies").size() > 1)
    std::stable_sort(levels.begin(), levels.end(), [&](const std::string& a, const std::string& b) {
      return values(a) < values(b);
    });
  return levels;
}

void add_gpus(Node& node, const Json& j) {
  const std::int64_t memory = j.at("gpu_memory_mb").get<std::int64_t>() / 100 * 100;
  const auto add = [&] {
    Gpu gpu;
    gpu.index = static_cast<int>(node.gpus.size());
    gpu.model = "gpu";
    gpu.memory_mib = memory;
    return &node.gpus.emplace_back(gpu);
  };
  const auto add_all = [&](int count, const auto& add_one) {
    if (count < 0 || count > kMaxGpusPerNode)
      throw std::runtime_error("too many GPUs, or less than none");
    for (int i = 0; i < count; ++i) add_one();
  };
  add_all(j.value("gpus_usable_whole", j.at("gpus").get<int>()), add);
  if (!j.contains("mig")) return;
  // Only the numbers of instances are known: each on a device of its own.
  for (const auto& [profile, count] : j["mig"].items())
    add_all(count.get<int>(), [&, name = canonical_mig_profile(profile)] {
      Gpu* gpu = add();
      gpu->mig_enabled = true;
      gpu->mig.push_back({name, -1});
    });
}

Node read_node(const Json& j, const std::vector<std::string>& levels) {
  Node node;
  node.name = j.at("name");
  node.capacity.cpu_milli = j.at("cpu_milli");
  node.capacity.memory_bytes = j.at("memory_bytes");
  node.capacity.named.push_back({"pods", j.at("pods")});
  for (const auto& [key, value] : j.at("labels").items()) set_label(node.labels, key, value);
  add_gpus(node, j);
  if (text(j, "mig_strategy") == "single")
    node.taints.push_back({kSingleMig, "", TaintEffect::NoSchedule});
  for (const std::string& level : levels)
    if (const std::string* value = find_label(node.labels, level)) node.domain.push_back(*value);
  if (node.domain.size() < levels.size()) node.domain.clear();
  return node;
}

Tenant read_tenant(const Json& j) {
  Tenant t;
  t.id = t.name = j.at("name");
  t.parent = text(j, "parent");
  t.priority = j.at("priority");
  t.guaranteed = {scaled(j, "deserved_gpus", kWholeGpu), scaled(j, "deserved_cpu_milli", 1),
                  scaled(j, "deserved_memory_bytes", 1)};
  t.limit.gpu_milli = scaled(j, "limit_gpus", kWholeGpu);
  t.limit.cpu_milli = scaled(j, "limit_cpu_milli", 1);
  t.limit.memory_bytes = scaled(j, "limit_memory_bytes", 1);
  t.over_quota_weight = scaled(j, "over_quota_weight", 1000);
  t.created_order = j.at("created_order");
  return t;
}

std::vector<Tenant> read_tenants(const Json& list) {
  std::vector<Tenant> tenants;
  std::set<std::string> known{""};
  while (tenants.size() < list.size()) {
    const std::size_t before = tenants.size();
    for (const Json& j : list)
      if (known.count(j.at("name")) == 0 && known.count(text(j, "parent")) > 0) {
        tenants.push_back(read_tenant(j));
        known.insert(tenants.back().id);
      }
    if (tenants.size() == before) break;  // a parent that is not there
  }
  return tenants;
}

TaskRequest read_request(const Json& j) {
  TaskRequest r;
  r.resources.cpu_milli = j.at("cpu_milli");
  r.resources.memory_bytes = j.at("memory_bytes");
  r.resources.named.push_back({"pods", 1});
  const int devices = j.value("devices", 1);
  if (j.contains("mig") && !j["mig"].empty()) {
    r.gpu.sharing = Sharing::Mig;
    for (const auto& [profile, count] : j["mig"].items())
      r.gpu.mig.push_back({canonical_mig_profile(profile), count});
  } else if (j.contains("gpu_memory_mb")) {
    r.gpu.count = devices;
    r.gpu.sharing = Sharing::Shared;
    r.gpu.memory_mib = j["gpu_memory_mb"];
  } else if (j.contains("gpu_fraction")) {
    r.gpu.count = devices;
    r.gpu.sharing = Sharing::Shared;
    r.gpu.milli = static_cast<int>(std::llround(j["gpu_fraction"].get<double>() * kWholeGpu));
  } else {
    r.gpu.count = j.value("gpus", 0);
  }
  if (j.contains("only_nodes")) r.only_nodes = j["only_nodes"].get<std::vector<std::string>>();
  if (r.gpu.sharing == Sharing::Exclusive)
    r.tolerations.push_back({kSingleMig, "", true, true, {}});
  return r;
}

TopologyWish read_wish(const Json& j) {
  TopologyWish wish;
  if (!j.contains("topology") || j["topology"].is_null()) return wish;
  wish.required_level = text(j["topology"], "required");
  wish.preferred_level = text(j["topology"], "preferred");
  return wish;
}

// Tasks with an explicit order first, highest order first; then by name.
std::vector<const Json*> in_order(const Json& tasks, const std::string& part) {
  std::vector<const Json*> list;
  for (const Json& task : tasks)
    if (text(task, "part") == part) list.push_back(&task);
  std::stable_sort(list.begin(), list.end(), [](const Json* a, const Json* b) {
    const bool has_a = a->contains("order"), has_b = b->contains("order");
    if (has_a != has_b) return has_a;
    if (has_a && (*a)["order"] != (*b)["order"]) return (*a)["order"] > (*b)["order"];
    return a->at("name") < b->at("name");
  });
  return list;
}

KaiTask read_task(const Json& j, int group, int rank) {
  KaiTask task{j.at("name"), group, rank, j.at("state"), text(j, "node"), {}};
  if (!j.contains("gpu_group") || j["gpu_group"].is_null()) return task;
  if (j["gpu_group"].is_array())
    task.gpu_groups = j["gpu_group"].get<std::vector<std::string>>();
  else
    task.gpu_groups.push_back(j["gpu_group"]);
  return task;
}

class JobReader {
 public:
  explicit JobReader(const Json& j) : tasks_(j.at("tasks")) {
    out_.job.id = out_.job.name = j.at("name");
    out_.job.tenant = j.at("queue");
    out_.job.priority = j.at("priority");
    out_.job.preemptible = out_.job.movable = j.at("preemptible");
    out_.being_deleted = j.value("being_deleted", false);
    out_.job.sets[0].topology = read_wish(j);
    if (j.contains("parts")) {
      out_.job.sets[0].min_children = j.value("min_parts", 0);
      for (const Json& part : j["parts"]) add_part(part, 0);
    } else {
      add_tasks("", j.at("gang_min"), 0, {});
    }
  }
  KaiJob take() { return std::move(out_); }

 private:
  void add_part(const Json& part, int parent) {
    if (!part.contains("parts"))
      return add_tasks(part.at("name"), part.at("min"), parent, read_wish(part));
    const int set = add_set(part.at("name"), parent, read_wish(part));
    out_.job.sets[static_cast<std::size_t>(set)].min_children = part.value("min_parts", 0);
    for (const Json& below : part["parts"]) add_part(below, set);
  }

  int add_set(const std::string& name, int parent, const TopologyWish& wish) {
    out_.job.sets.push_back({name, parent, wish, 0});
    return static_cast<int>(out_.job.sets.size()) - 1;
  }

  // One group per distinct request. The minimum of the part is met by its first tasks.
  void add_tasks(const std::string& part, int min, int set, const TopologyWish& wish) {
    const std::vector<const Json*> list = in_order(tasks_, part);
    std::vector<Group> groups;
    std::vector<std::vector<const Json*>> members;
    int seen = 0;
    for (const Json* j : list) {
      const TaskRequest request = read_request(*j);
      auto it = std::find_if(groups.begin(), groups.end(),
                             [&](const Group& g) { return g.request == request; });
      if (it == groups.end()) {
        it = groups.insert(it, Group{});
        it->request = request;
        it->count = 0;
        members.emplace_back();
      }
      ++it->count;
      it->min += seen++ < min ? 1 : 0;
      members[static_cast<std::size_t>(it - groups.begin())].push_back(j);
    }
    if (groups.empty()) return;
    if (seen < min) wait_for_more(groups.front(), min - seen);
    const bool alike = groups.size() == 1;
    const int into = alike ? set : add_set(part, set, wish);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].name = alike ? part : part + std::to_string(g);
      groups[g].set = into;
      if (alike) groups[g].topology = wish;
      if (groups[g].min == 0) groups[g].min = kNoMinimum;
      const int number = static_cast<int>(out_.job.groups.size());
      for (std::size_t i = 0; i < members[g].size(); ++i)
        out_.tasks.push_back(read_task(*members[g][i], number, static_cast<int>(i)));
      out_.job.groups.push_back(groups[g]);
    }
  }

  // A gang that needs more members than there are.
  void wait_for_more(Group& group, int more) {
    out_.job.arrived = static_cast<int>(tasks_.size());
    group.count += more;
    group.min += more;
  }

  const Json& tasks_;
  KaiJob out_;
};

// Jobs are a minute apart, the first being the oldest, unless their age is given.
std::vector<KaiJob> read_jobs(const Json& list) {
  constexpr Instant kNow{1'000'000'000};
  constexpr std::int64_t kMaxAgeMinutes = 1'000'000'000;
  std::vector<KaiJob> jobs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    jobs.push_back(JobReader(list[i]).take());
    const auto age = list[i].value("age_minutes", static_cast<std::int64_t>(list.size() - i));
    if (age < 0 || age > kMaxAgeMinutes) throw std::runtime_error("age_minutes is out of range");
    jobs.back().job.submitted = kNow - minutes(age);
  }
  return jobs;
}

void read_expectations(const Json& expect, KaiCase& out) {
  const auto read = [](const Json& e) { return KaiExpect{e.at("state"), text(e, "node")}; };
  for (const auto& [name, e] : expect.at("jobs").items()) {
    for (const KaiJob& job : out.jobs)
      if (job.job.id == name)
        for (const KaiTask& task : job.tasks) out.tasks[task.name] = read(e);
    if (e.contains("gpus_accepted") && !e["gpus_accepted"].is_null())
      out.accepted_gpu_milli[name] = scaled(e, "gpus_accepted", kWholeGpu);
  }
  if (expect.contains("tasks"))
    for (const auto& [name, e] : expect["tasks"].items()) out.tasks[name] = read(e);
  if (expect.contains("nodes"))
    for (const auto& [name, e] : expect["nodes"].items())
      out.node_gpus[name] = {static_cast<int>(e.at("idle_gpus").get<double>()),
                             static_cast<int>(e.at("releasing_gpus").get<double>())};
}

}  // namespace

KaiCase read_kai_case(const Json& c) {
  check_numbers(c);
  KaiCase out;
  out.levels = read_levels(c);
  for (const Json& j : c.at("nodes")) out.nodes.push_back(read_node(j, out.levels));
  out.tenants = read_tenants(c.at("queues"));
  out.jobs = read_jobs(c.at("jobs"));
  out.actions = c.at("actions").get<std::vector<std::string>>();
  out.rounds = c.at("rounds");
  out.stable_rounds = c.at("stable_rounds");
  out.compare = c.at("compare");
  read_expectations(c.at("expect"), out);
  check_case(out);
  return out;
}

}  // namespace gs
