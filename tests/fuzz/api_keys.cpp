// Any text is an error with its line or a set of keys, none of which is found by what is in it.
#include "drivers/auth/api_keys.hpp"

#include <cstdint>
#include <string>

#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto keys = gs::ApiKeys::parse(text);
  if (!keys.ok())
    CHECK(keys.error().message.starts_with("line "));
  else
    CHECK(!keys->find(text).has_value());
  return 0;
}
