#include "net/frame_stream.hpp"

#include <algorithm>
#include <cstdint>

namespace gs {
namespace {

constexpr char kWholeText = '\x81';

void add_frame(std::string& out, std::string_view text) {
  out += kWholeText;
  const std::uint64_t size = text.size();
  const int bytes = size < 126 ? 0 : size <= 0xffff ? 2 : 8;
  out += static_cast<char>(bytes == 0 ? size : bytes == 2 ? 126 : 127);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
  out += text;
}

}  // namespace

std::string text_frames(std::string_view lines) {
  std::string out;
  out.reserve(lines.size() + lines.size() / 32 + 16);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (!line.empty()) add_frame(out, line);
  }
  return out;
}

}  // namespace gs
