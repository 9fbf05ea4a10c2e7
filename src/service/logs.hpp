// Logs of jobs, wherever they are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace gs {

struct LogAsk {
  std::string node;
  std::string allocation;
  std::int64_t offset = 0;
  std::int64_t tail_lines = 0;  // > 0: the last so many lines
  bool follow = false;
};

struct LogPiece {
  std::int64_t offset = 0;
  std::string data;
  bool end = false;  // nothing more comes
  std::optional<Error> error;
};

// While it lives, pieces come; when it goes, they stop.
class LogReading {
 public:
  virtual ~LogReading() = default;
};

class Logs {
 public:
  virtual ~Logs() = default;
  // `piece` is called from another thread, with `end` or an error at last.
  virtual std::unique_ptr<LogReading> read(const LogAsk& ask,
                                           std::function<void(LogPiece)> piece) = 0;
};

}  // namespace gs
