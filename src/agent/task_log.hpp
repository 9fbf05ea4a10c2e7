// The output of a task: written by its supervisor, read by the agent at the same time.
//
// Positions count the bytes of the whole output, from the task's start, and stay true when old
// files are dropped: file `log.<n>` begins with byte n. A reader that asks for what is gone gets
// what is kept, and is told from where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/files.hpp"

namespace gs::agent {

class TaskLogWriter {
 public:
  TaskLogWriter(std::string directory, std::int64_t file_bytes, int files);
  // What the disk does not take is lost: a task never waits for its log.
  void append(std::string_view data);

 private:
  void rotate();

  std::string directory_;
  std::int64_t file_bytes_;
  int files_;
  Fd file_;
  std::int64_t position_ = 0, file_start_ = 0;
};

struct LogPiece {
  std::int64_t offset = 0;  // of the first byte; the next piece is at offset + data.size()
  std::string data;         // empty: nothing is there yet
};

LogPiece read_task_log(const std::string& directory, std::int64_t offset, std::size_t limit);
// Where the last `lines` lines begin.
std::int64_t tail_offset(const std::string& directory, std::int64_t lines);

}  // namespace gs::agent
