#include "agent/sampler.hpp"

#include <chrono>
#include <utility>

#include "agent/log.hpp"

namespace gs::agent {
namespace {

class LockedGpus final : public GpuSource {
 public:
  explicit LockedGpus(std::unique_ptr<GpuSource> source) : source_(std::move(source)) {}
  Gpus list() override {
    const std::lock_guard lock(mutex_);
    return source_->list();
  }
  std::vector<GpuSample> sample() override {
    const std::lock_guard lock(mutex_);
    return source_->sample();
  }
  bool simulated() const override { return source_->simulated(); }
  std::string describe() const override { return source_->describe(); }
  void forget_errors() override {
    const std::lock_guard lock(mutex_);
    source_->forget_errors();
  }
  Result<std::string> mig_uuid(int index, const std::string& profile, int start,
                               bool create) override {
    const std::lock_guard lock(mutex_);
    return source_->mig_uuid(index, profile, start, create);
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<GpuSource> source_;
};

bool health_changed(const std::vector<GpuSample>& before, const std::vector<GpuSample>& after) {
  if (before.size() != after.size()) return true;
  for (std::size_t i = 0; i < after.size(); ++i)
    if (before[i].health != after[i].health) return true;
  return false;
}

void tell(const std::vector<GpuSample>& before, const std::vector<GpuSample>& after) {
  for (std::size_t i = 0; i < after.size() && i < before.size(); ++i)
    if (before[i].health != after[i].health)
      log_warning("GPU {} ({}) is {} now{}{}", after[i].index, after[i].uuid,
                  health_name(after[i].health), after[i].last_error.empty() ? "" : ": ",
                  after[i].last_error);
}

}  // namespace

std::unique_ptr<GpuSource> locked(std::unique_ptr<GpuSource> source) {
  return std::make_unique<LockedGpus>(std::move(source));
}

Sampler::Sampler(GpuSource& source, std::int64_t interval_ms, std::function<void()> news)
    : source_(source), interval_ms_(interval_ms), news_(std::move(news)) {
  latest_ = source_.sample();
  thread_ = std::thread([this] { work(); });
}

Sampler::~Sampler() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::vector<GpuSample> Sampler::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Sampler::work() {
  std::unique_lock lock(mutex_);
  while (
      !wake_.wait_for(lock, std::chrono::milliseconds(interval_ms_), [this] { return leaving_; })) {
    lock.unlock();
    std::vector<GpuSample> now = source_.sample();
    lock.lock();
    const bool changed = health_changed(latest_, now);
    if (changed) tell(latest_, now);
    latest_ = std::move(now);
    if (!changed) continue;
    lock.unlock();
    news_();
    lock.lock();
  }
}

}  // namespace gs::agent
