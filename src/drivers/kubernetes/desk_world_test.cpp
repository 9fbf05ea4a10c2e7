// Random histories: pods, gangs and nodes come and go, watches lag, schedulers die between any two
// writes, two of them work side by side. At every write no GPU has two users (World::check), and no
// pod is sent where rules between pods forbid it (World::check_rules). In the end, when all is
// quiet, no lease is left behind, none is missing, and no pod waits beside a free place that it may
// use.
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "drivers/kubernetes/world_test.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

class Histories : public testing::TestWithParam<int> {};

constexpr const char* kZone = "zone";
constexpr const char* kHost = "kubernetes.io/hostname";

// Labels and, now and then, rules about pods with such labels.
Pod with_rules(Pod pod, Rng& rng, bool ruled) {
  const auto app = [&] { return std::string(rng.chance(0.5) ? "web" : "db"); };
  set_label(pod.meta.labels, "app", app());
  if (!ruled) return pod;
  PodTerm term;
  term.selector = LabelSelector{{{"app", LabelOp::In, {app()}}}};
  term.topology_key = rng.chance(0.5) ? kZone : kHost;
  switch (rng.below(5)) {
    case 0:
      pod.pod_anti_affinity.required = {term};
      break;
    case 1:
      pod.pod_affinity.required = {term};
      break;
    case 2: {
      TopologySpread spread;
      spread.topology_key = term.topology_key;
      spread.selector = term.selector;
      pod.spread = {spread};
      break;
    }
    case 3:
      pod.host_ports = {{rng.chance(0.5) ? "0.0.0.0" : "10.0.0.1", 80, "TCP"}};
      break;
    default:
      pod.pod_anti_affinity.preferred = {term};
      pod.pod_anti_affinity.preferred[0].weight = 10;
      break;
  }
  return pod;
}

void add_node(World& world, const std::string& name) {
  world.add_node(name, 4, {{kZone, name < "n2" ? "a" : "b"}});
}

// Another scheduler takes a device that is free, when ours have nothing under way: no lease would
// keep the two apart.
void bind_by_another(World& world, const std::string& uid) {
  world.play();
  std::map<std::string, std::set<int>> used;
  for (const Standing& other : world.standing())
    for (const int gpu : world.devices(other.pod->meta.uid)) used[other.node].insert(gpu);
  for (const auto& [name, node] : world.nodes())
    for (const Gpu& gpu : node.gpus) {
      if (!node.ready || used[name].contains(gpu.index)) continue;
      world.bind_by_another(uid, name, {gpu.index});
      (void)world.turn();
      return;
    }
}

struct Cast {
  int schedulers = 1;
  bool alone = true;  // one of them leads
  bool leases = true;
  bool hasty = false;            // pods say that they are done soon, and are not
  bool kubelet_chooses = false;  // for pods with limits; others are told their devices
};

void act(World& world, Rng& rng, int& names, bool rules, const Cast& cast) {
  const auto made = [&](Pod pod) {
    if (cast.hasty) set_label(pod.meta.annotations, kRuntimeAnnotation, "10s");
    return pod;
  };
  const bool named = cast.kubelet_chooses && rng.chance(0.4);
  const auto make = [&](const std::string& name, int gpus, const std::string& gang = {},
                        int size = 0) {
    return named ? world.make_named(name, gpus, gang, size)
                 : world.make_pod(name, gpus, gang, size);
  };
  std::vector<std::string> running, all;
  for (const auto& [uid, pod] : world.pods()) {
    all.push_back(uid);
    if (!pod.node_name.empty() && !pod.ended()) running.push_back(uid);
  }
  switch (rng.below(10)) {
    case 0:
    case 1:
    case 2: {
      Pod pod = made(make("p" + std::to_string(++names), 1 + static_cast<int>(rng.below(4))));
      pod.priority = static_cast<int>(rng.below(3)) * 100;
      world.add(rules ? with_rules(pod, rng, rng.chance(0.6)) : pod);
      break;
    }
    case 3: {
      const std::string gang = "g" + std::to_string(++names);
      const int size = 2 + static_cast<int>(rng.below(3));
      Rng alike(rng.next());
      const bool ruled = rules && rng.chance(0.5);
      for (int i = 0; i < size; ++i) {
        const Pod pod = made(make(gang + "-" + std::to_string(i), 2, gang, size));
        Rng member = alike;  // the same rules for all
        world.add(rules ? with_rules(pod, member, ruled) : pod);
      }
      break;
    }
    case 4:
    case 5:
      if (!running.empty())
        world.end_pod(running[rng.below(running.size())],
                      rng.chance(0.5) ? PodPhase::Succeeded : PodPhase::Failed);
      break;
    case 6:
      if (all.empty()) break;
      if (const std::string& uid = all[rng.below(all.size())];
          World::gang_of(world.pod(uid)) && rng.chance(0.7))
        world.make_anew(uid);
      else
        world.remove_pod(uid);
      break;
    case 7: {
      const std::string node = "n" + std::to_string(rng.below(4));
      if (!world.nodes().contains(node))
        add_node(world, node);
      else if (rng.chance(0.1))
        world.remove_node(node);
      else if (rng.chance(0.1))
        world.set_model(node, rng.chance(0.5) ? "H100" : "H100-SXM5-80GB");
      else if (rng.chance(0.2))
        world.set_health(node, rng.below(4), rng.chance(0.4) ? Health::Unhealthy : Health::Healthy);
      else
        world.set_ready(node, rng.chance(0.6));
      break;
    }
    case 8:
      if (rng.chance(0.3)) {
        world.add_shared("s" + std::to_string(++names), rng.chance(0.5) ? 300 : 0,
                         1024 * (8 + static_cast<std::int64_t>(rng.below(40))));
      } else if (rng.chance(0.5)) {
        const int gpu = static_cast<int>(rng.below(3));
        world.add_pinned("m" + std::to_string(++names), "n0",
                         rng.chance(0.5) ? std::vector<int>{gpu} : std::vector<int>{gpu, gpu + 1},
                         rng.chance(0.7) ? "map-a" : "map-b");
      } else if (world.pods().size() < 12) {
        bind_by_another(world, world.add_pod("o" + std::to_string(++names), 1, {}, 0, "other"));
      }
      break;
    default:
      if (!running.empty() && rng.chance(0.2))
        world.forget_claim(running[rng.below(running.size())]);
      if (rng.chance(0.2)) world.restart(rng.below(world.schedulers()));
      break;
  }
}

bool is_ruled(const Pod& pod) {
  return !pod.pod_anti_affinity.required.empty() || !pod.pod_affinity.required.empty() ||
         !pod.spread.empty() || !pod.host_ports.empty();
}

bool has_claim(const Pod& pod) { return pod.meta.annotation("test/claim-gone") == nullptr; }

bool waits(const Pod& pod) {
  return has_claim(pod) && pod.node_name.empty() && !pod.ended() && !pod.meta.deleted &&
         pod.scheduler_name == "gpu-scheduler" && pod.meta.annotation("test/pin") == nullptr &&
         pod.meta.annotation("test/share") == nullptr;
}

int gpus_of(const Pod& pod) {
  if (const std::string* named = pod.meta.annotation(kTestNamed)) return std::stoi(*named);
  return static_cast<int>(pod.containers[0].limits[0].amount.value());
}

using FreeGpus = std::map<std::string, int>;  // by node

FreeGpus free_gpus(const World& world) {
  FreeGpus free;
  for (const auto& [name, node] : world.nodes()) {
    std::set<int> used;
    for (const Standing& pod : world.standing())
      if (pod.node == name)
        for (const int gpu : world.devices(pod.pod->meta.uid)) used.insert(gpu);
    free[name] = static_cast<int>(node.gpus.size() - used.size());
  }
  return free;
}

std::string told(const World& world, const Pod& pod) {
  const auto it = world.told().find(pod.meta.uid);
  return it == world.told().end() ? "nothing was said" : it->second.message;
}

// A pod by itself, or one whose gang runs without it.
void expect_no_room(const World& world, const Pod& pod, const FreeGpus& free) {
  for (const auto& [name, node] : world.nodes()) {
    if (!broken_rule(pod, name, world.standing(), world.nodes()).empty()) continue;
    EXPECT_LT(free.at(name), gpus_of(pod))
        << pod.meta.name << " waits although " << name << " has room: " << told(world, pod);
  }
}

// A gang, or several pods that it runs without; those with rules may wait beside room
// (docs/kubernetes.md).
void expect_no_room(const World& world, const std::vector<const Pod*>& gang, const FreeGpus& free) {
  std::size_t room = 0;
  for (const auto& [name, gpus] : free)
    if (broken_rule(*gang.front(), name, world.standing(), world.nodes()).empty())
      room += static_cast<std::size_t>(gpus / gpus_of(*gang.front()));
  EXPECT_LT(room, gang.size()) << "gang of " << gang.front()->meta.name
                               << " waits beside room: " << told(world, *gang.front());
}

// What a quiet world must look like.
void look(World& world) {
  for (const char* name : {"n0", "n1", "n2", "n3"})
    if (world.nodes().contains(name)) {
      world.set_ready(name, true);
      for (std::size_t gpu = 0; gpu < 4; ++gpu) world.set_health(name, gpu, Health::Healthy);
    } else {
      add_node(world, name);
    }
  // Two that decide at once may take room from the same pods for ever, if these come back at once.
  world.set_controllers(world.alone());
  world.kill_evicted();
  world.advance(seconds(90));
  EXPECT_TRUE(world.left_over().empty()) << world.left_over().front();
  EXPECT_TRUE(world.without_lease().empty()) << world.without_lease().front();
  const FreeGpus free = free_gpus(world);
  std::map<std::string, std::vector<const Pod*>> waiting;  // by gang
  std::map<std::string, int> bound, done;
  for (const auto& [uid, pod] : world.pods()) {
    const auto gang = World::gang_of(pod);
    if (!gang && waits(pod)) expect_no_room(world, pod, free);
    if (!gang) continue;
    if (waits(pod)) waiting[gang->first].push_back(&pod);
    if (!has_claim(pod)) continue;  // nobody can say that it belongs to a gang
    bound[gang->first] += !pod.node_name.empty() && !pod.ended();
    done[gang->first] += pod.phase == PodPhase::Succeeded;
  }
  for (const auto& [name, pods] : waiting) {
    const int there = static_cast<int>(pods.size()) + bound[name] + done[name];
    if (there < World::gang_of(*pods.front())->second) continue;
    if (bound[name] > 0 && pods.size() == 1)
      expect_no_room(world, *pods.front(), free);
    else if (!is_ruled(*pods.front()))
      expect_no_room(world, pods, free);
  }
}

void play_history(int seed, Cast cast, bool rules) {
  Rng rng(static_cast<std::uint64_t>(seed));
  World world(cast.schedulers, cast.alone, cast.leases, cast.kubelet_chooses);
  for (const char* name : {"n0", "n1", "n2", "n3"}) add_node(world, name);
  int names = 0;
  for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
    if (rng.chance(0.15)) act(world, rng, names, rules, cast);
    if (rng.chance(0.1)) world.kill_evicted();
    if (cast.alone && cast.schedulers > 1 && rng.chance(0.02))
      world.take_over(rng.below(world.schedulers()));
    world.step(rng.below(world.schedulers()), rng);
  }
  if (!testing::Test::HasFailure()) look(world);
}

constexpr int kOtherKind = 1'000'000;  // of history: other dice

constexpr Cast kTwoAtOnce{2, false};
constexpr Cast kTwoInTurn{2, true};
constexpr Cast kWithoutLeases{1, true, false};
constexpr Cast kHasty{1, true, true, true};
constexpr Cast kKubeletChooses{1, true, true, false, true};

TEST_P(Histories, of_one_scheduler) { play_history(GetParam(), {}, false); }
TEST_P(Histories, of_two_schedulers_at_once) {
  play_history(GetParam() + kOtherKind, kTwoAtOnce, false);
}
TEST_P(Histories, of_pods_with_rules_about_each_other) {
  play_history(GetParam() + 2 * kOtherKind, {}, true);
}
TEST_P(Histories, of_rules_and_two_schedulers) {
  play_history(GetParam() + 3 * kOtherKind, kTwoAtOnce, true);
}
TEST_P(Histories, of_schedulers_that_take_over) {
  play_history(GetParam() + 4 * kOtherKind, kTwoInTurn, false);
}
TEST_P(Histories, of_rules_and_schedulers_that_take_over) {
  play_history(GetParam() + 5 * kOtherKind, kTwoInTurn, true);
}

TEST_P(Histories, of_a_scheduler_without_leases) {
  play_history(GetParam() + 6 * kOtherKind, kWithoutLeases, false);
}
TEST_P(Histories, of_pods_that_take_longer_than_they_say) {
  play_history(GetParam() + 7 * kOtherKind, kHasty, GetParam() % 2 == 0);
}

TEST_P(Histories, of_pods_whose_devices_the_kubelet_chooses) {
  play_history(GetParam() + 8 * kOtherKind, kKubeletChooses, GetParam() % 2 == 0);
}

// HISTORIES says how many of each; `scripts/test.py soak` plays thousands.
int histories() {
  const char* asked = std::getenv("HISTORIES");
  return asked == nullptr ? 60 : std::atoi(asked);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Histories, testing::Range(0, histories()));

}  // namespace
}  // namespace gs::kube
