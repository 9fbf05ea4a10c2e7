#include "agent/log_service.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/task_log.hpp"

namespace gs::agent {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::chrono::milliseconds kFollowPause{50};

}  // namespace

LogService::LogService(const Tasks& tasks, Outbox& outbox)
    : tasks_(tasks), outbox_(outbox), thread_([this] { work(); }) {}

LogService::~LogService() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void LogService::take(const std::string& allocation_id, const ::agent::LogRequest& request) {
  Reading reading;
  reading.request_id = request.request_id();
  reading.allocation_id = allocation_id;
  reading.directory = tasks_.directory(allocation_id).value_or("");
  reading.offset = request.offset();
  reading.follow = request.follow();
  if (!request.cancel() && request.tail_lines() > 0 && !reading.directory.empty())
    reading.offset = tail_offset(reading.directory, request.tail_lines());
  {
    const std::lock_guard lock(mutex_);
    if (request.cancel())
      cancelled_.push_back(request.request_id());
    else
      arrived_.push_back(std::move(reading));
  }
  wake_.notify_all();
}

void LogService::work() {
  std::unique_lock lock(mutex_);
  bool idle = true;
  while (!leaving_) {
    const auto something = [this] { return leaving_ || !arrived_.empty() || !cancelled_.empty(); };
    if (readings_.empty())
      wake_.wait(lock, something);
    else if (idle)
      wake_.wait_for(lock, kFollowPause, something);
    for (Reading& reading : arrived_) readings_.push_back(std::move(reading));
    arrived_.clear();
    for (const std::string& id : std::exchange(cancelled_, {}))
      for (Reading& reading : readings_)
        if (reading.request_id == id) reading.cancelled = true;
    lock.unlock();
    idle = true;
    for (auto reading = readings_.begin(); reading != readings_.end();) {
      const Progress progress = go_on(*reading);
      if (progress == Progress::Sent) idle = false;
      reading = progress == Progress::Done ? readings_.erase(reading) : reading + 1;
    }
    lock.lock();
  }
}

LogService::Progress LogService::go_on(Reading& reading) {
  ::agent::LogChunk chunk;
  chunk.set_request_id(reading.request_id);
  chunk.set_offset(reading.offset);
  // It moves when the task is forgotten.
  reading.directory = tasks_.directory(reading.allocation_id).value_or("");
  if (reading.directory.empty()) chunk.set_error("this machine has no log of that task");
  bool done = reading.cancelled || reading.directory.empty();
  if (!done) {
    // In this order: what was written before the end was seen is read after it.
    const auto view = tasks_.view(reading.allocation_id);
    const bool ended = !view || view->status.ended();
    LogPiece piece = read_task_log(reading.directory, reading.offset, kPieceBytes);
    done = piece.data.empty() && (ended || !reading.follow);
    // The first chunk may be empty: it says that there is a log.
    if (piece.data.empty() && !done && reading.begun) return Progress::Nothing;
    reading.begun = true;
    chunk.set_offset(piece.offset);
    reading.offset = piece.offset + static_cast<std::int64_t>(piece.data.size());
    chunk.set_data(std::move(piece.data));
  }
  chunk.set_end(done);
  const bool sent = outbox_.send_log(std::move(chunk));
  return done || !sent ? Progress::Done : Progress::Sent;
}

}  // namespace gs::agent
