// Runs a piece of work in a process of its own, so that one that dies can be told about.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gs {

struct ApartResult {
  bool died = false;
  std::string answer;          // what the work returned
  std::string last_words;      // what it wrote to the standard error
  std::uint64_t progress = 0;  // where it had got to
};

// The work may write to *progress at any time.
using ApartWork = std::function<std::string(volatile std::uint64_t* progress)>;

ApartResult run_apart(const ApartWork& work);
// All of them, `at_a_time`; `done` is called in the order in which they end.
void run_all_apart(std::size_t count, int at_a_time,
                   const std::function<std::string(std::size_t, volatile std::uint64_t*)>& work,
                   const std::function<bool(std::size_t, const ApartResult&)>& done);

}  // namespace gs
