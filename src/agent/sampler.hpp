// Looks at the GPUs now and then, in a thread of its own: a GPU that is broken may take the driver
// seconds to answer for, and a heartbeat must not wait for that.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "agent/inventory.hpp"

namespace gs::agent {

class Sampler {
 public:
  // `news`: called when the health of a GPU has changed.
  Sampler(GpuSource& source, std::int64_t interval_ms, std::function<void()> news);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  std::vector<GpuSample> latest() const;

 private:
  void work();

  GpuSource& source_;
  std::int64_t interval_ms_;
  std::function<void()> news_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<GpuSample> latest_;  // guarded by mutex_
  bool leaving_ = false;           // guarded by mutex_
  std::thread thread_;
};

// The same source for several threads, one at a time.
std::unique_ptr<GpuSource> locked(std::unique_ptr<GpuSource> source);

}  // namespace gs::agent
