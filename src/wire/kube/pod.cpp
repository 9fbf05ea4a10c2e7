#include "wire/kube/pod.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "wire/kube/condition.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<std::string_view, PodPhase> kPhases[] = {{"Pending", PodPhase::Pending},
                                                             {"Running", PodPhase::Running},
                                                             {"Succeeded", PodPhase::Succeeded},
                                                             {"Failed", PodPhase::Failed}};
constexpr std::pair<std::string_view, TaintEffect> kEffects[] = {
    {"NoSchedule", TaintEffect::NoSchedule},
    {"PreferNoSchedule", TaintEffect::PreferNoSchedule},
    {"NoExecute", TaintEffect::NoExecute}};

void read_resources(Cursor& in, ResourceList& requests, ResourceList& limits) {
  in.object([&](std::string_view field) {
    if (field == "requests") read(in, requests);
    if (field == "limits") read(in, limits);
  });
}

void read_port(Cursor& in, Pod& pod) {
  HostPort port;
  in.object([&](std::string_view field) {
    if (field == "hostPort") in.read(port.port);
    if (field == "hostIP") in.read(port.ip);
    if (field == "protocol") in.read(port.protocol);
  });
  if (port.ip.empty()) port.ip = "0.0.0.0";
  if (port.port != 0) pod.host_ports.push_back(std::move(port));
}

// With hostNetwork the API server has set hostPort. Ports of init containers don't count, but of
// those that go on running.
void read_container(Cursor& in, Pod& pod, bool init) {
  Container container;
  std::string_view ports;
  in.object([&](std::string_view field) {
    if (field == "name")
      in.read(container.name);
    else if (field == "resources")
      read_resources(in, container.requests, container.limits);
    else if (field == "ports")
      ports = in.raw();
    else if (field == "restartPolicy" && init) {
      std::string policy;
      in.read(policy);
      container.sidecar = policy == "Always";
    }
  });
  if (!in.failed() && !ports.empty() && (!init || container.sidecar)) {
    Cursor inner(ports);
    inner.array([&] { read_port(inner, pod); });
    if (const Status status = inner.finish(); !status) in.fail("ports: " + status.error().message);
  }
  (init ? pod.init_containers : pod.containers).push_back(std::move(container));
}

// An operator or effect that is newer than this program tolerates nothing.
void read_toleration(Cursor& in, std::vector<Toleration>& tolerations) {
  Toleration toleration;
  std::string word, effect;
  in.object([&](std::string_view field) {
    if (field == "key") in.read(toleration.key);
    if (field == "value") in.read(toleration.value);
    if (field == "operator") in.read(word);
    if (field == "effect") in.read(effect);
  });
  if (!word.empty() && word != "Exists" && word != "Equal") return;
  toleration.exists = word == "Exists";
  toleration.any_effect = effect.empty();
  if (!effect.empty()) {
    const auto* known = std::find_if(std::begin(kEffects), std::end(kEffects),
                                     [&](const auto& pair) { return pair.first == effect; });
    if (known == std::end(kEffects)) return;
    toleration.effect = known->second;
  }
  tolerations.push_back(std::move(toleration));
}

// `own`: volumes whose claims are made for the pod and named after it.
using OwnVolumes = std::vector<std::string>;

void read_volume(Cursor& in, Pod& pod, OwnVolumes& own) {
  std::string name, claim;
  bool ephemeral = false;
  in.object([&](std::string_view field) {
    if (field == "name") in.read(name);
    if (field == "ephemeral") {
      ephemeral = true;
      in.skip();
    }
    if (field == "persistentVolumeClaim")
      in.object([&](std::string_view inner) {
        if (inner == "claimName") in.read(claim);
      });
  });
  if (ephemeral) own.push_back(std::move(name));
  if (!claim.empty()) pod.volume_claims.push_back(std::move(claim));
}

void read_named(Cursor& in, std::vector<std::string>& names) {
  in.array([&] {
    in.object([&](std::string_view field) {
      if (field == "name") in.read(names.emplace_back());
    });
  });
}

void read_policy(Cursor& in, bool& may_preempt) {
  std::string word;
  in.read(word);
  may_preempt = word != "Never";
}

// The lists that come after the plain fields.
bool read_list(Cursor& in, Pod& pod, OwnVolumes& own, std::string_view field) {
  if (field == "containers")
    in.array([&] { read_container(in, pod, false); });
  else if (field == "initContainers")
    in.array([&] { read_container(in, pod, true); });
  else if (field == "tolerations")
    in.array([&] { read_toleration(in, pod.tolerations); });
  else if (field == "topologySpreadConstraints")
    in.array([&] { read_spread(in, pod.spread.emplace_back()); });
  else if (field == "volumes")
    in.array([&] { read_volume(in, pod, own); });
  else if (field == "schedulingGates")
    read_named(in, pod.gates);
  else if (field == "resourceClaims")
    read_named(in, pod.device_claims);
  else
    return false;
  return true;
}

void read_spec(Cursor& in, Pod& pod, OwnVolumes& own) {
  in.object([&](std::string_view field) {
    if (read_list(in, pod, own, field)) return;
    if (field == "schedulerName")
      in.read(pod.scheduler_name);
    else if (field == "nodeName")
      in.read(pod.node_name);
    else if (field == "priorityClassName")
      in.read(pod.priority_class);
    else if (field == "priority")
      in.read(pod.priority);
    else if (field == "preemptionPolicy")
      read_policy(in, pod.may_preempt);
    else if (field == "hostNetwork")
      in.read(pod.host_network);
    else if (field == "overhead")
      read(in, pod.overhead);
    else if (field == "resources")
      read_resources(in, pod.pod_requests, pod.pod_limits);
    else if (field == "nodeSelector")
      in.read(pod.node_selector);
    else if (field == "affinity")
      read_affinity(in, pod);
    else if (field == "terminationGracePeriodSeconds")
      in.read(pod.grace_s);
    else if (field == "activeDeadlineSeconds")
      read_deadline(in, pod.deadline);
  });
}

void read_condition(Cursor& in, Pod& pod) {
  Condition condition = read_condition(in);
  if (condition.type != "PodScheduled") return;
  pod.scheduled = condition.status == "True";
  pod.scheduled_reason = std::move(condition.reason);
  pod.scheduled_message = std::move(condition.message);
}

// While a container shrinks, its node still keeps what it has: the most of all counts.
using Kept = std::vector<std::pair<std::string, ResourceList>>;  // by container

void read_container_status(Cursor& in, Kept& kept) {
  auto& [name, amounts] = kept.emplace_back();
  in.object([&](std::string_view field) {
    if (field == "name") in.read(name);
    if (field == "allocatedResources") read(in, amounts);
    if (field == "resources")
      in.object([&](std::string_view inner) {
        if (inner == "requests") read(in, amounts);
      });
  });
}

void keep(const Kept& kept, std::vector<Container>& containers) {
  for (Container& container : containers)
    for (const auto& [name, amounts] : kept) {
      if (name != container.name) continue;
      for (const NamedQuantity& amount : amounts)
        for (NamedQuantity& request : container.requests)
          if (request.name == amount.name) request.amount = std::max(request.amount, amount.amount);
    }
}

void read_status(Cursor& in, Pod& pod, Kept& kept) {
  in.object([&](std::string_view field) {
    if (field == "containerStatuses" || field == "initContainerStatuses")
      in.array([&] { read_container_status(in, kept); });
    if (field == "phase") {
      std::string word;
      in.read(word);
      const auto* known = std::find_if(std::begin(kPhases), std::end(kPhases),
                                       [&](const auto& pair) { return pair.first == word; });
      if (!word.empty()) pod.phase = known == std::end(kPhases) ? PodPhase::Unknown : known->second;
    }
    if (field == "nominatedNodeName") in.read(pod.nominated_node);
    if (field == "startTime") read(in, pod.started);
    if (field == "conditions") in.array([&] { read_condition(in, pod); });
  });
}

}  // namespace

const Quantity* find(const ResourceList& list, std::string_view name) {
  const auto it = std::find_if(list.begin(), list.end(),
                               [&](const NamedQuantity& item) { return item.name == name; });
  return it == list.end() ? nullptr : &it->amount;
}

void read(Cursor& in, ResourceList& list) {
  in.object([&](std::string_view name) {
    if (in.next() == 'n') return;
    std::string quoted;
    std::string_view text;
    if (in.next() == '"')
      in.read(quoted), text = quoted;
    else
      text = in.raw();
    if (in.failed()) return;
    const Result<Quantity> amount = parse_quantity(text);
    if (!amount) return in.fail(amount.error().message);
    if (amount->is_negative()) return in.fail("must not be negative");
    list.push_back({std::string(name), *amount});
  });
}

// A Job may be given none at all.
void read_deadline(Cursor& in, std::optional<Duration>& deadline) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (in.next() == 'n') return in.skip();
  std::int64_t given = 0;
  in.read(given);
  deadline = seconds(std::clamp<std::int64_t>(given, 1, kMost));
}

bool conflict(const HostPort& a, const HostPort& b) {
  if (a.port != b.port || a.protocol != b.protocol) return false;
  return a.ip == b.ip || a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
}

void read(Cursor& in, Pod& pod) {
  OwnVolumes own;
  Kept kept;
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, pod.meta);
    if (field == "spec") read_spec(in, pod, own);
    if (field == "status") read_status(in, pod, kept);
  });
  for (const std::string& volume : own) pod.volume_claims.push_back(pod.meta.name + "-" + volume);
  keep(kept, pod.containers);
  keep(kept, pod.init_containers);
}

Result<Pod> decode_pod(std::string_view text) {
  Pod pod;
  Cursor in(text);
  read(in, pod);
  if (const Status status = in.finish(); !status) return status.error();
  if (pod.meta.name.empty()) return invalid("metadata.name is required");
  return pod;
}

}  // namespace gs::kube
