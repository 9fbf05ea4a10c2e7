// Small texts of users: maps, quantities, bandwidths and allocations. What is accepted, written
// again, is the same.
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "wire/kube/claim.hpp"
#include "wire/kube/quantity.hpp"
#include "wire/kube/scheduling_map.hpp"
#include "wire/kube/topology_ask.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs::kube;
  if (size > 8192) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = parse_scheduling_map(text); map.ok()) {
    std::string written;
    for (const MapEntry& entry : map->entries)
      written += std::to_string(entry.index) + "=" + allocated_text(entry.node, entry.gpus) + "\n";
    const auto again = parse_scheduling_map(written);
    CHECK(again.ok() && again->entries.size() == map->entries.size());
    for (std::size_t i = 0; i < again->entries.size(); ++i)
      CHECK(again->entries[i].node == map->entries[i].node &&
            again->entries[i].gpus == map->entries[i].gpus);
  } else {
    CHECK(map.error().message.starts_with("gpu-scheduling-map "));
  }
  if (const auto quantity = parse_quantity(text); quantity.ok()) {
    CHECK(quantity->is_negative() || quantity->milli() >= quantity->value());
    CHECK(parse_quantity(std::to_string(quantity->value()))->value() == quantity->value());
  }
  if (const auto gbps = parse_bandwidth_gbps(text); gbps.ok()) CHECK(*gbps >= 0);
  if (const auto allocated = parse_allocated(text); allocated.ok())
    CHECK(parse_allocated(allocated_text(allocated->node, allocated->gpus)).value() == *allocated);
  return 0;
}
