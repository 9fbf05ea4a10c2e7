// Colours on a terminal, plain text everywhere else.
#pragma once

#include <string>

namespace gs {

enum class Paint { Plain, Bold, Dim, Red, Green, Yellow, Blue, Magenta, Cyan };

// Whether stdout is a terminal that wants colours (NO_COLOR and TERM=dumb do not).
bool wants_colour();
std::string paint(const std::string& text, Paint colour, bool on);

}  // namespace gs
