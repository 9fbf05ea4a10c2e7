// The terminal as a place for pictures that change. It is left as it was found, however we leave.
#pragma once

#include <string_view>

#include <termios.h>

#include "base/time.hpp"

namespace gs::cli {

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};
TerminalSize terminal_size();

class Screen {
 public:
  Screen();   // the other screen of the terminal, keys without echo
  ~Screen();  // back again
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(std::string_view frame);
  // Until the time is over or a key is pressed; whether it was one that leaves (q, Ctrl-C).
  bool wait(Duration time);

 private:
  termios before_{};
  bool has_keys_ = false;
};

}  // namespace gs::cli
