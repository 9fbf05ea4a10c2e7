// NodeState: a node and what is left of it.
//
// Invariants, for CPU, memory, each named resource and each GPU's milli and memory:
//   0 <= releasing <= used, 0 <= nominated, used - releasing + nominated <= capacity, used <=
//   capacity.
// `busy_now`/`busy_future` are exact functions of the GPU states; nobody else writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/gpu_mask.hpp"
#include "base/ids.hpp"
#include "cluster/layout.hpp"
#include "cluster/shapes.hpp"
#include "cluster/task.hpp"
#include "model/node.hpp"

namespace gs {

struct Ledger {
  std::int64_t capacity = 0, used = 0, releasing = 0, nominated = 0;

  std::int64_t free(View view) const {
    return view == View::Now ? capacity - used - std::max<std::int64_t>(0, nominated - releasing)
                             : capacity - used + releasing - nominated;
  }
  void charge(TaskState state, std::int64_t amount) {
    if (state == TaskState::Nominated) {
      nominated += amount;
      return;
    }
    used += amount;
    if (state == TaskState::Releasing) releasing += amount;
  }
};

struct GpuState {
  Ledger milli{kWholeGpu, 0, 0, 0};
  Ledger memory_mib;
  // Whose pinned tasks have or will have the device; they share it among themselves. None while
  // there are only releasing ones.
  PinOwner pin_owner;
  int pin_tasks = 0, pin_releasing = 0;
  int mig_holds = 0;  // reservations that keep its MIG instances for themselves

  bool pinned(View view) const { return pin_tasks > (view == View::Now ? 0 : pin_releasing); }
};

struct MigSlotState {
  std::uint32_t profile = 0;  // interned
  std::int8_t start = -1;
  std::uint8_t size = 1;
  std::uint16_t id = 0;
  bool used = false, releasing = false, nominated = false;

  bool free(View view) const {
    return !nominated && (!used || (view == View::Future && releasing));
  }
};

struct MigGpuState {
  int gpu = 0;
  bool dynamic = false;
  std::uint16_t next_id = 1;
  std::vector<MigSlotState> instances;

  // One order however the instances came about: which of two like ones is taken must not depend on
  // the past.
  void sort_by_start();
};

struct NodeState {
  Node spec;
  const Layout* layout = nullptr;  // interned in the Cluster
  DomainId domain;
  std::uint32_t spec_stamp =
      0;  // changes whenever `spec` does: answers about labels etc. are stale
  bool gone = false;

  Ledger cpu_milli;
  Ledger memory_bytes;
  std::vector<Ledger> named;  // by interned resource number; may be shorter than the registry
  std::vector<GpuState> gpus;
  std::vector<MigGpuState> mig;  // only GPUs with mig_enabled or mig_dynamic

  GpuMask healthy = 0;  // present, Healthy
  GpuMask hot = 0;      // at or above the thermal threshold, until cooled down
  GpuMask warm = 0;     // near the threshold: taken only when cooler ones don't do
  GpuMask whole = 0;    // not cut by MIG
  GpuMask busy_now = 0;
  GpuMask busy_future = 0;
  GpuMask partly = 0;  // some milli used or promised, some left in the future view

  std::vector<TaskId> tasks;  // unordered; decisions sort by job sequence and rank
  double performance = 1.0;   // 0..1, decayed share of tasks that did not fail because of the node

  bool schedulable() const { return !gone && spec.ready && !spec.cordoned; }
  GpuMask usable() const { return healthy & ~hot & whole; }
  GpuMask free_gpus(View view) const {
    return usable() & ~(view == View::Now ? busy_now : busy_future);
  }
  int free_milli(int gpu, View view) const {
    return static_cast<int>(gpus[static_cast<std::size_t>(gpu)].milli.free(view));
  }
  std::int64_t free_memory_mib(int gpu, View view) const {
    return gpus[static_cast<std::size_t>(gpu)].memory_mib.free(view);
  }
  const MigGpuState* mig_gpu(int gpu) const;

  // Adds (sign 1) or takes back (sign -1) what a task in this state holds.
  void charge(const Shape& shape, const Allocation& place, JobId job, TaskState state, int sign);
  void refresh_gpu(int gpu);
};

// Compute and memory that a shared request takes of one GPU of this size. What is not asked for
// follows from the other: half the memory is half the GPU.
struct GpuPart {
  int milli = 0;
  std::int64_t memory_mib = 0;
};
GpuPart gpu_part(const GpuRequest& request, std::int64_t gpu_memory_mib);

// What a task counts for in its tenant's books.
struct Usage {
  std::int64_t gpu_milli = 0, gpu_memory_mib = 0, cpu_milli = 0, memory_bytes = 0;
  Usage& operator+=(const Usage& o) {
    gpu_milli += o.gpu_milli, gpu_memory_mib += o.gpu_memory_mib, cpu_milli += o.cpu_milli,
        memory_bytes += o.memory_bytes;
    return *this;
  }
  Usage& operator-=(const Usage& o) {
    gpu_milli -= o.gpu_milli, gpu_memory_mib -= o.gpu_memory_mib, cpu_milli -= o.cpu_milli,
        memory_bytes -= o.memory_bytes;
    return *this;
  }
  bool operator==(const Usage&) const = default;
};
// On GPUs of `gpu_memory_mib` each (for requests in memory, and for the memory of whole GPUs).
Usage usage_of(const Shape& shape, std::int64_t gpu_memory_mib);

}  // namespace gs
