// Any text is either an error or settings that, written out, read the same again.
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "wire/settings_yaml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto settings = gs::decode_settings(text);
  if (!settings.ok()) return 0;
  (void)gs::validate(*settings);
  const std::string written = gs::settings_text(*settings);
  const auto again = gs::decode_settings(written);
  CHECK_MSG(again.ok(), again.ok() ? "" : again.error().message);
  CHECK(gs::settings_text(*again) == written);
  return 0;
}
