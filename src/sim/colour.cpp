#include "sim/colour.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace gs {

bool wants_colour() {
  const char* term = std::getenv("TERM");
  if (std::getenv("NO_COLOR") != nullptr || term == nullptr) return false;
  return std::string_view(term) != "dumb" && isatty(STDOUT_FILENO) != 0;
}

std::string paint(const std::string& text, Paint colour, bool on) {
  static constexpr const char* kCodes[] = {"0", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!on || colour == Paint::Plain) return text;
  return std::string("\033[") + kCodes[static_cast<int>(colour)] + "m" + text + "\033[0m";
}

}  // namespace gs
