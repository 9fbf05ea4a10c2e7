// Freed: lets a std::unique_ptr own what a C library has made, by the function that frees it.
#pragma once

namespace gs {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

}  // namespace gs
