// Any text is either an error with its line or a scenario that plays without breaking an invariant.
#include "sim/scenario.hpp"

#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto scenario = gs::scenario::read_scenario("fuzz.scn", text);
  if (!scenario.ok()) return 0;
  for (const auto& one : scenario->cases) (void)gs::scenario::play_case(one);
  return 0;
}
