#include "wire/kube/scheduler_config.hpp"

#include <algorithm>
#include <utility>

#include "wire/kube/names.hpp"
#include "wire/yaml_json.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<const char*, Strategy> kStrategies[] = {
    {"balanced", Strategy::Balanced},
    {"consolidated", Strategy::Consolidated},
    {"distributed", Strategy::Distributed}};

constexpr std::size_t kMaxName = 253;

bool is_word_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// What a name of an object may be: words with '-' in them, separated by '.'.
bool is_object_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  char before = '.';
  for (const char c : name) {
    if (!is_word_character(c) && !(c == '-' && before != '.') &&
        !(c == '.' && is_word_character(before)))
      return false;
    before = c;
  }
  return is_word_character(before);
}

// gpu-{node}-{id}: who finds its name taken by an election believes that the GPU is.
bool is_like_gpu_lease(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return name.starts_with("gpu-") && end != std::string_view::npos && end + 1 < name.size() &&
         end > 3 && name[end] == '-';
}

void read_weights(ObjectReader& in, ScoringWeights& weights) {
  const std::pair<const char*, double*> fields[] = {
      {"resourceAvailability", &weights.resource_availability},
      {"topologyAlignment", &weights.topology_alignment},
      {"domainUtilization", &weights.domain_utilization},
      {"historicalPerformance", &weights.historical_performance}};
  for (const auto& [field, weight] : fields)
    if (in.optional(field, *weight) && !(*weight >= 0 && *weight <= 1))
      in.fail(field, "must be 0..1");
}

void read_constraints(ObjectReader& in, Config& config) {
  if (in.optional("maxNodesPerLeaf", config.max_nodes_per_leaf) && config.max_nodes_per_leaf < 0)
    in.fail("maxNodesPerLeaf", "must not be negative; 0 means no limit");
  if (in.optional("maxGPUsPerLeaf", config.max_gpus_per_leaf) && config.max_gpus_per_leaf < 0)
    in.fail("maxGPUsPerLeaf", "must not be negative; 0 means no limit");
}

void check_domains(ObjectReader& in, const SchedulerConfig& config) {
  std::vector<std::string> names, nodes;
  for (const NamedDomain& domain : config.domains) {
    if (!domain.parent.empty() &&
        std::find(names.begin(), names.end(), domain.parent) == names.end())
      in.fail("domains", "'" + domain.name + "' has the parent '" + domain.parent +
                             "', which must be listed before it");
    if (std::find(names.begin(), names.end(), domain.name) != names.end())
      in.fail("domains", "lists '" + domain.name + "' twice");
    names.push_back(domain.name);
    nodes.insert(nodes.end(), domain.nodes.begin(), domain.nodes.end());
  }
  std::sort(nodes.begin(), nodes.end());
  const auto twice = std::adjacent_find(nodes.begin(), nodes.end());
  if (twice != nodes.end()) in.fail("domains", "lists node '" + *twice + "' twice");
}

void read_topology(ObjectReader& in, SchedulerConfig& config) {
  std::vector<TopologyLevel> levels;
  const bool given = in.array("levels", [&](ObjectReader& one) {
    TopologyLevel& level = levels.emplace_back();
    one.required("name", level.name);
    one.required("labels", level.labels);
    if (level.name.empty() || level.name == "node")
      one.fail("name", "must be a word other than 'node'");
  });
  if (given) config.levels = std::move(levels);
  config.domains.clear();
  in.array("domains", [&](ObjectReader& one) {
    NamedDomain& domain = config.domains.emplace_back();
    one.required("name", domain.name);
    one.optional("parent", domain.parent);
    one.optional("nodes", domain.nodes);
  });
  check_domains(in, config);
}

void read_switches(ObjectReader& in, Config& config) {
  in.one_of("placementStrategy", config.strategy, kStrategies);
  in.optional("preemption", config.preemption);
  in.optional("reclaim", config.reclaim);
  in.optional("consolidation", config.consolidation);
  in.optional("gangScheduling", config.gang_scheduling);
  in.optional("thermalAware", config.thermal_aware);
  in.optional("agingPerHour", config.aging_per_hour);
  in.optional("reservations", config.reservations);
  in.optional("maxMoves", config.max_moves);
  in.optional("maxQueue", config.max_queue);
}

void read_leases(ObjectReader& in, SchedulerConfig& config) {
  in.optional("leases", config.leases);
  if (in.optional("leaseNamespace", config.lease_namespace) && config.lease_namespace.empty())
    in.fail("leaseNamespace", "must not be empty");
  if (!in.optional("leaderElectLease", config.leader_lease)) return;
  if (const Status status = check_leader_lease(config.leader_lease); !status)
    in.fail("leaderElectLease", status.error().message);
}

void read_spec(ObjectReader& in, SchedulerConfig& config) {
  in.object("scoringWeights",
            [&](ObjectReader& inner) { read_weights(inner, config.engine.weights); });
  in.object("topologyConstraints",
            [&](ObjectReader& inner) { read_constraints(inner, config.engine); });
  in.object("topology", [&](ObjectReader& inner) { read_topology(inner, config); });
  read_switches(in, config.engine);
  if (in.optional("schedulerNames", config.scheduler_names) && config.scheduler_names.empty())
    in.fail("schedulerNames", "must name at least one scheduler");
  in.one_of("deviceNaming", config.device_naming, kDeviceNamings);
  read_leases(in, config);
}

// Its namespace is not taken: there lie the leases of GPUs, too.
Status read_election(const Json& json, SchedulerConfig& config) {
  const auto election = json.find("leaderElection");
  if (election == json.end() || !election->is_object()) return ok_status();
  const auto name = election->find("resourceName");
  if (name == election->end() || !name->is_string()) return ok_status();
  config.leader_lease = name->get<std::string>();
  if (config.leader_lease.empty()) return ok_status();
  if (const Status status = check_leader_lease(config.leader_lease); !status)
    return invalid("leaderElection.resourceName " + status.error().message);
  return ok_status();
}

// The configuration of a stock scheduler: its profiles name the schedulers; plugins are our own.
bool is_of_kube_scheduler(const Json& json) {
  if (!json.is_object()) return false;
  const auto api = json.find("apiVersion");
  return api != json.end() && api->is_string() &&
         api->get_ref<const std::string&>().starts_with("kubescheduler.config.k8s.io/");
}

Result<SchedulerConfig> read_profiles(const Json& json) {
  SchedulerConfig config;
  config.scheduler_names.clear();
  const auto profiles = json.find("profiles");
  if (profiles != json.end() && profiles->is_array())
    for (const Json& profile : *profiles) {
      if (!profile.is_object()) continue;
      const auto name = profile.find("schedulerName");
      if (name != profile.end() && name->is_string())
        config.scheduler_names.push_back(name->get<std::string>());
    }
  if (config.scheduler_names.empty())
    return invalid("profiles must name at least one scheduler, in schedulerName");
  if (const Status status = read_election(json, config); !status) return status.error();
  return config;
}

Result<SchedulerConfig> read_config(const Json& json) {
  if (is_of_kube_scheduler(json)) return read_profiles(json);
  SchedulerConfig config;
  std::string api, kind;
  ObjectReader in(json);
  in.required("apiVersion", api);
  in.required("kind", kind);
  if (!api.empty() && api != kTopologyApi)
    in.fail("apiVersion", std::string("must be ") + kTopologyApi + ", got '" + api + "'");
  if (!kind.empty() && kind != "SchedulerConfig" && kind != "TopologySchedulerConfig")
    in.fail("kind", "must be SchedulerConfig or TopologySchedulerConfig, got '" + kind + "'");
  (void)in.value("metadata");
  (void)in.value("status");
  in.object("spec", [&](ObjectReader& spec) { read_spec(spec, config); });
  if (const Status status = in.finish(); !status) return status.error();
  if (const Status status = validate(config.engine); !status)
    return invalid("spec: " + status.error().message);
  return config;
}

// The path of a domain: its parents first.
std::vector<std::string> path_of(const NamedDomain* domain, const SchedulerConfig& config) {
  std::vector<std::string> path;
  while (domain != nullptr) {
    path.insert(path.begin(), domain->name);
    const auto parent =
        std::find_if(config.domains.begin(), config.domains.end(),
                     [&](const NamedDomain& d) { return d.name == domain->parent; });
    domain = parent == config.domains.end() ? nullptr : &*parent;
  }
  return path;
}

}  // namespace

SchedulerConfig::SchedulerConfig()
    : levels{{"spine",
              {"topology.scheduler/spine", "topology.kubernetes.io/spine",
               "network.topology.nvidia.com/spine", "topology.kubernetes.io/zone"}},
             {"leaf",
              {"topology.scheduler/leaf", "topology.kubernetes.io/leaf",
               "network.topology.nvidia.com/leaf", "topology.kubernetes.io/rack"}}} {}

Status check_leader_lease(const std::string& name) {
  if (!is_object_name(name))
    return invalid("must be lower-case letters, digits, '-' and '.', got '" + name + "'");
  if (is_like_gpu_lease(name))
    return invalid("must not look like the lease of a GPU, gpu-NODE-ID, got '" + name + "'");
  return ok_status();
}

Result<std::string> leader_lease_of(const SchedulerConfig& config) {
  if (!config.leader_lease.empty()) return config.leader_lease;
  const std::vector<std::string> usual = SchedulerConfig().scheduler_names;
  const bool has_usual_name = std::any_of(usual.begin(), usual.end(), [&](const auto& name) {
    return std::find(config.scheduler_names.begin(), config.scheduler_names.end(), name) !=
           config.scheduler_names.end();
  });
  if (has_usual_name || !config.leases) return usual.front();
  std::string name = config.scheduler_names.front();
  if (is_like_gpu_lease(name)) name += ".leader";
  if (is_object_name(name)) return name;
  return invalid("a Lease can't be called like the scheduler, '" + config.scheduler_names.front() +
                 "': name one with --leader-elect-lease");
}

Result<SchedulerConfig> decode_scheduler_config(std::string_view json) {
  const Result<Json> parsed = parse_json(json);
  if (!parsed) return parsed.error();
  return read_config(*parsed);
}

Result<SchedulerConfig> scheduler_config_of_yaml(std::string_view yaml) {
  const Result<Json> json = yaml_to_json(yaml);
  if (!json) return json.error();
  return read_config(*json);
}

Result<SchedulerConfig> scheduler_config_of_map(std::string_view config_map) {
  Labels data;
  Cursor in(config_map);
  in.object([&](std::string_view field) {
    if (field == "data") in.read(data);
  });
  if (const Status status = in.finish(); !status) return status.error();
  const std::string* text = find_label(data, "config.yaml");
  if (text == nullptr && data.size() == 1) text = &data.front().second;
  if (text == nullptr)
    return invalid("the ConfigMap must have an entry config.yaml with a SchedulerConfig");
  Result<SchedulerConfig> config = scheduler_config_of_yaml(*text);
  if (!config) return invalid("config.yaml: " + config.error().message);
  return config;
}

std::vector<std::string> network_path(const Meta& node, const SchedulerConfig& config) {
  std::vector<std::string> path(config.levels.size());
  std::size_t known = 0;  // levels up to the innermost that is known
  for (const NamedDomain& domain : config.domains) {
    if (std::find(domain.nodes.begin(), domain.nodes.end(), node.name) == domain.nodes.end())
      continue;
    std::vector<std::string> named = path_of(&domain, config);
    known = std::min(named.size(), path.size());
    // A flat list of leaves says nothing about what is above them.
    const std::size_t above = domain.parent.empty() ? path.size() - known : 0;
    std::copy_n(named.end() - static_cast<std::ptrdiff_t>(known), known,
                path.begin() + static_cast<std::ptrdiff_t>(above));
    known += above;
  }
  for (std::size_t i = 0; i < config.levels.size(); ++i)
    for (const std::string& label : config.levels[i].labels) {
      const std::string* value = node.label(label);
      if (value == nullptr || value->empty() || !path[i].empty()) continue;
      path[i] = *value;
      known = std::max(known, i + 1);
    }
  if (known == 0) return {};
  for (std::size_t i = 0; i < path.size(); ++i)
    if (path[i].empty()) path[i] = i < known ? "-" : node.name;
  return path;
}

}  // namespace gs::kube
