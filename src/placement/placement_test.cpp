// Placement against brute force: slots are what placing really achieves, the index agrees with a
// full scan, and device sets are the best there are.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "cluster/trial.hpp"
#include "model/mig.hpp"
#include "placement/devices.hpp"
#include "placement/filters.hpp"
#include "placement/fit.hpp"
#include "placement/mig.hpp"
#include "placement/node_index.hpp"
#include "placement/place.hpp"

namespace gs {
namespace {

Gpu gpu(int index, const std::string& island, int bandwidth = 600) {
  Gpu g;
  g.index = index;
  g.model = "H100-80GB";
  g.memory_mib = 81'920;
  g.island = island;
  g.bandwidth_gbps = bandwidth;
  return g;
}

Node node(const std::string& name, int gpus, int islands = 2) {
  Node n;
  n.name = name;
  n.capacity = {64'000, 512LL * 1024 * kMiB, {{"pods", 110}}};
  for (int i = 0; i < gpus; ++i) n.gpus.push_back(gpu(i, "i" + std::to_string(i * islands / gpus)));
  return n;
}

Job job_of(const std::string& id, const TaskRequest& request, int count = 1) {
  Job j;
  j.id = id;
  j.tenant = "t";
  Group group;
  group.request = request;
  group.count = count;
  j.groups.push_back(group);
  return j;
}

struct Lab {
  Lab() {
    Tenant t;
    t.id = "t";
    tenant = cluster.put_tenant(t);
  }
  JobId add(const TaskRequest& request, int count = 1) {
    return cluster.add_job(job_of("j" + std::to_string(next++), request, count), tenant);
  }
  bool place_one(const TaskRequest& request) {
    const JobId job = add(request);
    Trial trial(cluster);
    const bool placed =
        placer.place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}});
    trial.keep();
    return placed;
  }
  // 0: it has no place.
  GpuMask gpus_given(const TaskRequest& request) {
    const JobId job = add(request);
    Trial trial(cluster);
    if (!placer.place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}})) return 0;
    trial.keep();
    return cluster.task(cluster.job(job).tasks.at(0)).place.gpus;
  }
  Cluster cluster;
  Config config;
  TenantId tenant;
  Placer placer{cluster, config};
  int next = 0;
};

TaskRequest random_request(Rng& rng) {
  TaskRequest r;
  r.resources.cpu_milli = rng.between(0, 8) * 1000;
  r.resources.memory_bytes = rng.between(0, 32) * 1024 * kMiB;
  r.resources.named = {{"pods", 1}};
  r.gpu.count = static_cast<int>(rng.between(0, 4));
  if (r.gpu.count > 0 && rng.chance(0.4)) {
    r.gpu.sharing = Sharing::Shared;
    r.gpu.count = rng.chance(0.7) ? 1 : 2;
    if (r.gpu.count > 1 && rng.chance(0.7)) {
      r.gpu.policy = rng.chance(0.5) ? DevicePolicy::Contiguous : DevicePolicy::Spread;
      r.gpu.topology = rng.chance(0.5) ? TopologyMode::Required : TopologyMode::Preferred;
    }
    if (rng.chance(0.5)) r.gpu.milli = static_cast<int>(rng.between(1, 10)) * 100;
    if (r.gpu.milli == 0 || rng.chance(0.3)) r.gpu.memory_mib = rng.between(1, 8) * 10'000;
  } else if (r.gpu.count > 1 && rng.chance(0.5)) {
    r.gpu.policy = rng.chance(0.5) ? DevicePolicy::Contiguous : DevicePolicy::Best;
    r.gpu.topology = rng.chance(0.5) ? TopologyMode::Required : TopologyMode::Ignore;
  }
  return r;
}

TEST(Fit, SlotsAreWhatPlacingAchieves) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    Lab lab;
    const NodeId id = lab.cluster.put_node(node("n", 8, rng.chance(0.5) ? 2 : 1));
    for (int i = 0; i < 6; ++i) lab.place_one(random_request(rng));
    const TaskRequest request = random_request(rng);
    const ShapeId shape = lab.cluster.shapes().intern(request);
    const int promised =
        slots(lab.cluster, lab.cluster.node(id), lab.cluster.shapes().at(shape), View::Now, 200);
    int placed = 0;
    while (placed < 200 && lab.place_one(request)) ++placed;
    ASSERT_EQ(promised, placed) << "seed " << seed;
    lab.cluster.verify();
  }
}

TEST(Devices, TheBestSetIsFoundByBruteForceToo) {
  Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    Node n = node("n", 8);
    for (int i = 0; i < 64; ++i) n.peer_bandwidth_gbps.push_back(0);
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < i; ++j)
        n.peer_bandwidth_gbps[static_cast<std::size_t>(i * 8 + j)] =
            n.peer_bandwidth_gbps[static_cast<std::size_t>(j * 8 + i)] =
                static_cast<int>(rng.between(1, 5)) * 100;
    Names models;
    const Layout layout = layout_of(n, models);
    const GpuMask free = rng.next() & 0xff;
    GpuRequest request;
    request.count = static_cast<int>(rng.between(1, 4));
    const GpuMask chosen = choose_whole(layout, free, request);
    const auto sum = [&](GpuMask set) {
      int total = 0;
      for_each_gpu(set, [&](int a) {
        for_each_gpu(set, [&](int b) { total += a < b ? layout.between(a, b) : 0; });
      });
      return total;
    };
    int best = -1;
    for (GpuMask set = 0; set < 256; ++set)
      if ((set & ~free) == 0 && gpu_count(set) == request.count) best = std::max(best, sum(set));
    if (best < 0) {
      EXPECT_EQ(chosen, 0u);
    } else {
      EXPECT_EQ(gpu_count(chosen), request.count);
      EXPECT_EQ(chosen & ~free, 0u);
      EXPECT_EQ(sum(chosen), best);
    }
  }
}

TEST(Devices, PoliciesDoWhatTheySay) {
  Names models;
  const Layout layout = layout_of(node("n", 8), models);  // islands 0-3 and 4-7
  GpuRequest request;
  request.count = 2;
  request.policy = DevicePolicy::Contiguous;
  EXPECT_EQ(choose_whole(layout, 0b0101'0101, request), 0u);  // nothing adjacent
  EXPECT_EQ(choose_whole(layout, 0b0011'1000, request),
            0b0011'0000u);  // 4,5 share an island, 3,4 don't
  request.policy = DevicePolicy::Spread;
  EXPECT_EQ(choose_whole(layout, 0xff, request), 0b0001'0001u);
  request.policy = DevicePolicy::PreferIds;
  request.prefer_ids = {6, 7};
  EXPECT_EQ(choose_whole(layout, 0xff, request), 0b1100'0000u);
  EXPECT_EQ(gpu_count(choose_whole(layout, 0x0f, request)), 2);         // falls back
  EXPECT_EQ(choose_whole(layout, 0b1011'1111, request), 0b1001'0000u);  // 7, and one beside it
  request.topology = TopologyMode::Required;
  EXPECT_EQ(choose_whole(layout, 0b1000'1111, request), 0b0000'0011u);  // 7 has nobody
  request.prefer_ids = {3, 4};
  EXPECT_EQ(choose_whole(layout, 0xff, request), 0b0000'1001u);  // one of both
  request.prefer_ids = {6, 7};
  request.topology = TopologyMode::Ignore;
  request.count = 4;
  EXPECT_EQ(choose_whole(layout, 0xff, request), 0b1111'0000u);  // both, and two beside them
  request.count = 2;
  request.policy = DevicePolicy::Best;
  request.topology = TopologyMode::Required;
  request.min_bandwidth_gbps = 600;
  EXPECT_EQ(choose_whole(layout, 0b0001'0001, request), 0u);  // across islands: PCIe only
  request.topology = TopologyMode::Preferred;
  EXPECT_EQ(choose_whole(layout, 0b0001'0001, request), 0b0001'0001u);
}

TEST(Devices, SpreadMeansBusesTooWhereIslandsDontTellThemApart) {
  Names models;
  Node n = node("n", 8, 1);
  for (Gpu& g : n.gpus) g.numa = g.index / 4;
  const Layout one_island = layout_of(n, models);
  GpuRequest request;
  request.count = 2;
  request.policy = DevicePolicy::Spread;
  EXPECT_EQ(choose_whole(one_island, 0xff, request), 0b0001'0001u);
  EXPECT_EQ(choose_whole(one_island, 0b1111'0111, request), 0b0001'0001u);
  request.count = 3;
  EXPECT_EQ(choose_whole(one_island, 0xff, request), 0b0001'0011u);
  request.count = 2;
  for (Gpu& g : n.gpus) g.island = "";
  EXPECT_EQ(choose_whole(layout_of(n, models), 0xff, request), 0b0001'0001u) << "no islands";
  for (Gpu& g : n.gpus) g.island = std::to_string(g.index / 2);
  EXPECT_EQ(choose_whole(layout_of(n, models), 0xff, request), 0b0001'0001u) << "pairs";
}

TEST(Devices, GpusWithoutAnIslandAreConnectedWithNobody) {
  Names models;
  Node n = node("n", 4);
  n.gpus[2].island = n.gpus[3].island = "";
  GpuRequest request;
  request.count = 2;
  request.topology = TopologyMode::Required;
  EXPECT_EQ(choose_whole(layout_of(n, models), 0b1111, request), 0b0011u);
  EXPECT_EQ(choose_whole(layout_of(n, models), 0b1110, request), 0u);
}

TEST(Devices, ANodeMayHaveAsManyGpusAsThereCanBe) {
  Names models;
  const Layout layout = layout_of(node("n", kMaxGpusPerNode), models);
  GpuRequest request;
  for (const int count : {1, 2, 3, 61, 62, 63, 64}) {
    request.count = count;
    EXPECT_EQ(gpu_count(choose_whole(layout, ~GpuMask{0}, request)), count);
  }
}

// Of a Shared request the same is demanded as of one for whole GPUs.
TEST(Devices, WhoSharesHasAPolicyAndLinksToo) {
  Lab lab;
  lab.cluster.put_node(node("n", 8));  // islands 0-3 and 4-7
  const auto part = [](int count, int milli) {
    TaskRequest r;
    r.gpu.sharing = Sharing::Shared;
    r.gpu.count = count;
    r.gpu.milli = milli;
    return r;
  };
  TaskRequest preferred = part(1, 300);
  preferred.gpu.policy = DevicePolicy::PreferIds;
  for (const int wanted : {5, 3}) {
    preferred.gpu.prefer_ids = {wanted};
    EXPECT_EQ(lab.gpus_given(preferred), gpu_bit(wanted));
  }
  EXPECT_EQ(lab.gpus_given(part(2, 100)), 0b0010'1000u) << "the tightest";
  TaskRequest linked = part(2, 100);
  linked.gpu.topology = TopologyMode::Required;
  EXPECT_EQ(gpu_count(lab.gpus_given(linked) & 0x0f) % 2, 0) << "not over two islands";
  TaskRequest adjacent = part(3, 100);
  adjacent.gpu.policy = DevicePolicy::Contiguous;
  const GpuMask run = lab.gpus_given(adjacent);
  EXPECT_EQ(run >> std::countr_zero(run), 0b111u);
  TaskRequest apart = part(2, 100);
  apart.gpu.policy = DevicePolicy::Spread;
  EXPECT_EQ(gpu_count(lab.gpus_given(apart) & 0x0f), 1);
  linked.gpu.milli = 700;  // on 3 and 5 there is less
  linked.gpu.count = 4;
  EXPECT_EQ(lab.gpus_given(linked), 0u);
}

TEST(Devices, WhoSharesBreaksNoWholeGpuWhereOthersAreAsGood) {
  Lab lab;
  lab.cluster.put_node(node("n", 8, 1));
  TaskRequest part;
  part.gpu.sharing = Sharing::Shared;
  part.gpu.count = 1;
  part.gpu.milli = 600;
  part.gpu.policy = DevicePolicy::PreferIds;
  for (const int used : {6, 7}) {
    part.gpu.prefer_ids = {used};
    EXPECT_EQ(lab.gpus_given(part), gpu_bit(used));
  }
  TaskRequest two;
  two.gpu.sharing = Sharing::Shared;
  two.gpu.count = 2;
  two.gpu.milli = 100;
  for (const TopologyMode mode : {TopologyMode::Preferred, TopologyMode::Required}) {
    two.gpu.topology = mode;
    EXPECT_EQ(lab.gpus_given(two), gpu_bit(6) | gpu_bit(7));
  }
}

TEST(Fit, ManySmallPartsOfConnectedGpusAreCountedAtOnce) {
  Lab lab;
  const NodeId id = lab.cluster.put_node(node("n", 16, 1));
  TaskRequest tiny;
  tiny.gpu.sharing = Sharing::Shared;
  tiny.gpu.count = 4;
  tiny.gpu.milli = 1;
  tiny.gpu.topology = TopologyMode::Required;
  const Shape& shape = lab.cluster.shapes().at(lab.cluster.shapes().intern(tiny));
  EXPECT_EQ(slots(lab.cluster, lab.cluster.node(id), shape, View::Now), 4000);
}

TEST(Devices, OneGpuIsTakenWhereItHurtsTheRestLeast) {
  Names models;
  const Layout layout = layout_of(node("n", 8), models);
  GpuRequest request;
  request.count = 1;
  EXPECT_EQ(choose_whole(layout, 0b0011'1111, request),
            0b0001'0000u);  // from the island that is broken already
}

// Legal geometries: whatever the picker cuts, slots never overlap and starts are legal.
TEST(Mig, WhateverIsCutIsLegal) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Lab lab;
    Node n = node("n", 2);
    for (Gpu& g : n.gpus) g.mig_enabled = g.mig_dynamic = true;
    const NodeId id = lab.cluster.put_node(n);
    const auto& profiles = mig_profiles("H100-80GB", 81'920);
    std::vector<JobId> running;
    for (int step = 0; step < 60; ++step) {
      TaskRequest r;
      r.gpu.sharing = Sharing::Mig;
      r.gpu.mig = {{profiles[rng.below(profiles.size())].name, 1}};
      const JobId job = lab.add(r);
      {
        Trial trial(lab.cluster);
        const bool placed =
            lab.placer.place(trial, {job, {{0, {0}}}, Firmness::StartNow, nullptr, Instant{0}});
        if (placed && rng.chance(0.7)) {
          running.push_back(job);
          trial.keep();
        }
      }
      if (!running.empty() && rng.chance(0.3)) {
        const std::size_t i = rng.below(running.size());
        if (!lab.cluster.job(running[i]).tasks.empty())
          lab.cluster.remove_task(lab.cluster.job(running[i]).tasks[0]);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      }
      for (const auto& state : lab.cluster.node(id).mig) {
        std::uint8_t taken = 0;
        for (const auto& instance : state.instances) {
          const std::uint8_t mine = gs::mig_slots(instance.start, instance.size);
          ASSERT_EQ(taken & mine, 0) << "seed " << seed;
          taken = static_cast<std::uint8_t>(taken | mine);
          const auto* profile =
              find_mig_profile("H100-80GB", 81'920,
                               lab.cluster.shapes().resources().name(instance.profile).substr(4));
          ASSERT_NE(profile, nullptr);
          ASSERT_TRUE(profile->starts >> instance.start & 1);
        }
      }
    }
    lab.cluster.verify();
  }
}

TEST(Mig, SevenSmallOrThreeAndFourFitOneGpu) {
  Lab lab;
  Node n = node("n", 1);
  n.gpus[0].mig_enabled = n.gpus[0].mig_dynamic = true;
  lab.cluster.put_node(n);
  TaskRequest r;
  r.gpu.sharing = Sharing::Mig;
  r.gpu.mig = {{"4g.40gb", 1}};
  EXPECT_TRUE(lab.place_one(r));
  EXPECT_FALSE(lab.place_one(r));  // the other half can't be a 4g
  r.gpu.mig = {{"3g.40gb", 1}};
  EXPECT_TRUE(lab.place_one(r));
  r.gpu.mig = {{"1g.10gb", 1}};
  EXPECT_FALSE(lab.place_one(r));
}

// The incremental index against scores computed from scratch, under random changes.
TEST(NodeIndex, AgreesWithAFullScan) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    Lab lab;
    lab.cluster.set_topology({"leaf"});
    for (int i = 0; i < 40; ++i) {
      Node n = node("n" + std::to_string(i), static_cast<int>(rng.between(1, 8)));
      n.domain = {"leaf-" + std::to_string(i / 8)};
      lab.cluster.put_node(n);
    }
    lab.config.strategy = rng.chance(0.5) ? Strategy::Consolidated : Strategy::Distributed;
    lab.placer.reconfigured();
    const TaskRequest request = random_request(rng);
    const ShapeId shape = lab.cluster.shapes().intern(request);
    const Scorer scorer(lab.config);
    NodeOrder order;
    order.build(lab.cluster);
    NodeIndex kept(lab.cluster, scorer, order, shape, View::Now);
    for (int step = 0; step < 100; ++step) {
      lab.place_one(random_request(rng));
      kept.sync();
      NodeIndex fresh(lab.cluster, scorer, order, shape, View::Now);
      fresh.sync();
      ASSERT_EQ(kept.best(), fresh.best()) << "seed " << seed << " step " << step;
      ASSERT_EQ(kept.ranked(DomainTree::root(), nullptr),
                fresh.ranked(DomainTree::root(), nullptr));
      for (const DomainId leaf : lab.cluster.domains().at(DomainTree::root()).children) {
        const auto ranked = fresh.ranked(leaf, nullptr);
        ASSERT_EQ(kept.best(leaf), ranked.empty() ? NodeId{} : ranked.front());
      }
    }
  }
}

TEST(Placer, AFailedPlacementLeavesNoTrace) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    Lab lab;
    for (int i = 0; i < 3; ++i) lab.cluster.put_node(node("n" + std::to_string(i), 4));
    for (int i = 0; i < 5; ++i) lab.place_one(random_request(rng));
    const JobId gang = lab.add(random_request(rng), static_cast<int>(rng.between(2, 12)));
    const std::uint64_t before = lab.cluster.hash();
    std::vector<int> ranks;
    for (int i = 0; i < lab.cluster.shape_of(gang).tasks; ++i) ranks.push_back(i);
    {
      Trial trial(lab.cluster);
      const bool placed =
          lab.placer.place(trial, {gang, {{0, ranks}}, Firmness::StartNow, nullptr, Instant{0}});
      EXPECT_EQ(trial.changes().size(), placed ? ranks.size() : 0u);
    }
    ASSERT_EQ(lab.cluster.hash(), before) << "seed " << seed;
    lab.cluster.verify();
  }
}

}  // namespace
}  // namespace gs
