#include "wire/kube/device_names.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

namespace gs::kube {

const char* word_of(DeviceNaming naming) {
  const auto* row = std::find_if(std::begin(kDeviceNamings), std::end(kDeviceNamings),
                                 [&](const auto& one) { return one.second == naming; });
  return row->first;
}

DeviceNames names_by_index(const std::vector<int>& gpus) {
  std::vector<int> counted(gpus.size());
  std::iota(counted.begin(), counted.end(), 0);
  return {fmt::format("{}", fmt::join(gpus, ",")), fmt::format("{}", fmt::join(counted, ","))};
}

DeviceNames device_names(const std::vector<int>& gpus, const gs::Node& node, DeviceNaming naming) {
  if (naming == DeviceNaming::Index) return names_by_index(gpus);
  std::vector<std::string> uuids;
  for (const int id : gpus) {
    const bool known = id >= 0 && id < static_cast<int>(node.gpus.size());
    if (!known || node.gpus[static_cast<std::size_t>(id)].uuid.empty()) return names_by_index(gpus);
    uuids.push_back(node.gpus[static_cast<std::size_t>(id)].uuid);
  }
  const std::string text = fmt::format("{}", fmt::join(uuids, ","));
  return {text, text};
}

}  // namespace gs::kube
