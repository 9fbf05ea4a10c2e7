#include "model/spec.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

JobSpec good_spec() {
  JobSpec spec;
  spec.tenant_id = "tenant-1";
  spec.name = "train";
  spec.command = {"true"};
  return spec;
}

// What is wrong with a job that is right but for this change; "ok" where nothing is.
template <typename Change>
std::string wrong(Change change) {
  JobSpec spec = good_spec();
  change(spec);
  const Status status = validate(spec);
  return status ? "ok" : status.error().message;
}

TEST(JobSpec, GpusOfOneNodeAreBoundedInTheUsersWords) {
  EXPECT_EQ(wrong([](JobSpec& s) { s.gpu_count = 64; }), "ok");
  EXPECT_EQ(wrong([](JobSpec& s) { s.gpu_count = 99; }),
            "gpu_count must be at most 64 per node, got 99; with gang_scheduling: true it may "
            "span nodes");
  EXPECT_EQ(wrong([](JobSpec& s) {
              s.gpu_count = 99;
              s.gang_scheduling = true;
            }),
            "ok");
  EXPECT_EQ(wrong([](JobSpec& s) {
              s.gpu_count = 200;
              s.nodes = 2;
              s.gang_scheduling = true;
            }),
            "gpu_count must be at most 64 per node, got 200 on 2 nodes");
  EXPECT_EQ(wrong([](JobSpec& s) {
              s.gpu_count = 99;
              s.mig_profile = "1g.10gb";
            }),
            "ok");
}

// What the service lets in, the engine must not refuse in words of its own.
TEST(JobSpec, WhatIsValidIsAValidJobForTheEngine) {
  for (const int gpus : {0, 1, 7, 64, 65, 128, 1000})
    for (const int nodes : {0, 1, 2, 8})
      for (const bool gang : {false, true})
        for (const int milli : {0, 500, 1000}) {
          JobSpec spec = good_spec();
          spec.gpu_count = gpus;
          spec.nodes = nodes;
          spec.gang_scheduling = gang;
          spec.gpu_milli = milli;
          if (!validate(spec)) continue;
          const Status engine = validate(to_job(spec, "job-1", Instant{}));
          EXPECT_TRUE(engine) << gpus << " GPUs, " << nodes << " nodes, gang " << gang << ", "
                              << milli << " milli: " << engine.error().message;
        }
}

}  // namespace
}  // namespace gs
