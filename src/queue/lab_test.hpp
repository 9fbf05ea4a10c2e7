// A small cluster for tests: nodes of whole GPUs, tenants, jobs that run or wait.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.hpp"
#include "model/sample_test.hpp"
#include "queue/amounts.hpp"

namespace gs {

class QueueLab {
 public:
  Cluster cluster;

  NodeId node(const std::string& name, int gpus) {
    Node node = sample_node(name, gpus);
    node.capacity = {1'000'000, 1'000'000'000'000, {}};
    return cluster.put_node(node);
  }

  TenantId tenant(const std::string& id, std::int64_t guaranteed_gpus, std::int64_t weight = 1,
                  const std::string& parent = {}) {
    Tenant t;
    t.id = id;
    t.parent = parent;
    t.guaranteed.gpu_milli = guaranteed_gpus * kWholeGpu;
    t.over_quota_weight = weight;
    t.created_order = created_++;
    return cluster.put_tenant(t);
  }

  static Job job(const std::string& id, int gpus, int tasks = 1, int min = 0, int priority = 500) {
    Job job;
    job.id = id;
    job.priority = priority;
    Group group;
    group.name = "g";
    group.request.gpu.count = gpus;
    group.request.resources.cpu_milli = 1000;
    group.count = tasks;
    group.min = min;
    job.groups.push_back(group);
    return job;
  }

  JobId add(Job job, TenantId tenant) {
    job.tenant = cluster.tenant(tenant).spec.id;
    if (job.submitted == Instant{}) job.submitted = Instant{++clock_};
    return cluster.add_job(job, tenant);
  }

  // The task of this rank runs on the lowest free GPUs of the node.
  TaskId run(JobId job, int rank, NodeId node, TaskState state = TaskState::Running) {
    const int count = cluster.shapes().at(cluster.shape_of(job).groups[0].shape).gpus();
    GpuMask gpus = 0;
    for_each_gpu(cluster.node(node).free_gpus(View::Now), [&](int gpu) {
      if (gpu_count(gpus) < count) gpus |= gpu_bit(gpu);
    });
    cluster.job(job).state = JobState::Running;
    return cluster.place(job, 0, rank, {node, gpus, {}}, state, Instant{clock_});
  }

  JobId running(Job job, TenantId tenant, NodeId node) {
    const int tasks = job.groups[0].count;
    const JobId id = add(std::move(job), tenant);
    for (int rank = 0; rank < tasks; ++rank) run(id, rank, node);
    return id;
  }

 private:
  int created_ = 0;
  std::int64_t clock_ = 0;
};

}  // namespace gs
