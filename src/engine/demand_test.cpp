// What the engine learns about demand is part of its state: it survives a snapshot, and asking
// questions does not teach it anything.
#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "engine/engine.hpp"

namespace gs {
namespace {

Node node(int number, Rng& rng) {
  Node n;
  n.name = "n" + std::to_string(number);
  n.capacity = {rng.between(16, 96) * 1000, 512LL * 1024 * kMiB, {}};
  for (int i = 0; i < (number % 2 == 0 ? 8 : 2); ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.model = number % 3 == 0 ? "A" : "B";
    gpu.memory_mib = 40'960;
    n.gpus.push_back(gpu);
  }
  return n;
}

Job job(int number, Rng& rng) {
  Job j;
  j.id = "j" + std::to_string(number);
  j.tenant = "t";
  Group group;
  GpuRequest& gpu = group.request.gpu;
  gpu.count = static_cast<int>(rng.between(0, 2));
  if (gpu.count == 1 && rng.chance(0.6))
    gpu.sharing = Sharing::Shared, gpu.milli = static_cast<int>(rng.between(1, 9)) * 100;
  if (gpu.count > 0 && rng.chance(0.2)) gpu.models = {"A"};
  group.request.resources.cpu_milli = rng.between(1, 6) * 1000;
  j.groups.push_back(group);
  return j;
}

// A job comes; sometimes one that runs ends.
void step(Engine& engine, int number, Rng& rng) {
  ASSERT_TRUE(engine.handle(SubmitJob{job(number, rng)}, Instant{number}).ok());
  engine.tick(Instant{number});
  const std::string old = "j" + std::to_string(rng.between(0, number));
  if (rng.chance(0.5))
    (void)engine.handle(TaskEnded{{old, 0, 0}, Outcome::Succeeded}, Instant{number});
}

void build(Engine& engine, Rng& rng) {
  Tenant t;
  t.id = "t";
  ASSERT_TRUE(engine.handle(PutTenant{t}, Instant{0}).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine.handle(PutNode{node(i, rng)}, Instant{0}).ok());
}

TEST(EngineDemandTest, ARestoredEngineHasLearnedTheSame) {
  Rng rng(11);
  Engine original;
  build(original, rng);
  for (int i = 0; i < 700; ++i) step(original, i, rng);
  const std::unique_ptr<Engine> restored = Engine::restore(original.snapshot());
  ASSERT_EQ(restored->hash(), original.hash());
  Rng one = rng, two = rng;
  for (int i = 700; i < 1400; ++i) {
    step(original, i, one);
    step(*restored, i, two);
    ASSERT_EQ(restored->hash(), original.hash()) << "after job " << i;
  }
}

TEST(EngineDemandTest, QuestionsTeachNothing) {
  Rng rng(12);
  Engine asked, left_alone;
  Rng same = rng;
  build(asked, rng);
  build(left_alone, same);
  for (int i = 0; i < 300; ++i) {
    Rng other(static_cast<std::uint64_t>(i));
    (void)asked.dry_run(job(100'000 + i, other), Instant{i});
    (void)asked.explain("j" + std::to_string(i / 2), Instant{i});
    step(asked, i, rng);
    step(left_alone, i, same);
    ASSERT_EQ(asked.hash(), left_alone.hash()) << "after job " << i;
  }
}

TEST(EngineDemandTest, APolicyMustBeOneOfTheTable) {
  Engine engine;
  Config config;
  config.node_policy = "no-such";
  const Result<Effects> refused = engine.handle(SetConfig{config}, Instant{0});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no-such"), std::string::npos);
  EXPECT_EQ(engine.config().node_policy, "default");
  config.node_policy = "fgd";
  EXPECT_TRUE(engine.handle(SetConfig{config}, Instant{0}).ok());
}

}  // namespace
}  // namespace gs
