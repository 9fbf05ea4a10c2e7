// Ctrl-C during long work: what has been done so far is told before the program ends.
#pragma once

#include <csignal>

namespace gs {

// While it lives, the first SIGINT or SIGTERM is noted and does not end the program; the next one
// does. There is one at a time.
class Interrupt {
 public:
  static constexpr int kExitCode = 130;  // as a shell tells that it was Ctrl-C

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;
  // For a child, which has nothing to tell: it ends at once.
  static void not_here();

 private:
  struct sigaction before_int_ {};
  struct sigaction before_term_ {};
};

}  // namespace gs
