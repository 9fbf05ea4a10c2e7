// A running 64-bit hash over plain values: compares states of two engines, finds interned values.
#pragma once

#include <cstdint>
#include <string_view>

namespace gs {

class Hash {
 public:
  Hash& add(std::uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
    return *this;
  }
  Hash& add(std::string_view text) {
    std::uint64_t h = 0xcbf29ce484222325ULL;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return add(h).add(static_cast<std::uint64_t>(text.size()));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f6a8885a308d3ULL;
};

}  // namespace gs
