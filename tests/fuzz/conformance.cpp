// Any JSON is either refused by the reader or a case that runs to a verdict.
#include "sim/conformance.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 8192) return 0;
  const auto json = nlohmann::json::parse(data + 1, data + size, nullptr, false);
  if (json.is_discarded()) return 0;
  try {
    (void)(data[0] % 2 == 0 ? gs::run_kai_case(json, false) : gs::run_kueue_case(json, false));
  } catch (const nlohmann::json::exception&) {
    // bad input: the command says so
  } catch (const std::runtime_error&) {
  }
  return 0;
}
