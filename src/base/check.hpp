// CHECK: a broken promise of our own code stops the process, in release builds too. A scheduler
// that goes on with wrong books gives a GPU away twice; one that stops is restarted.
#pragma once

#include <string_view>

namespace gs {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message = {});

}  // namespace gs

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) [[unlikely]]                        \
      ::gs::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_MSG(condition, message)                                \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::gs::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
