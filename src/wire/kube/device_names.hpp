// How a pod's devices are called in its environment. Whoever sees all GPUs of a node calls one as
// the node does; in a container that sees no others they are counted from 0 again. UUIDs are right
// in both: a device is never mistaken for another one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/node.hpp"

namespace gs::kube {

enum class DeviceNaming : std::uint8_t { Index, Uuid };

// As users write it.
inline constexpr std::pair<const char*, DeviceNaming> kDeviceNamings[] = {
    {"index", DeviceNaming::Index}, {"uuid", DeviceNaming::Uuid}};
const char* word_of(DeviceNaming naming);

struct DeviceNames {
  std::string on_node;       // "2,3" or "GPU-...,GPU-..."
  std::string in_container;  // "0,1" or the same UUIDs, where a container sees no others
  bool operator==(const DeviceNames&) const = default;
};

DeviceNames names_by_index(const std::vector<int>& gpus);
// By index, too, where the UUID of one of them is not known: CUDA does not read lists of both.
DeviceNames device_names(const std::vector<int>& gpus, const gs::Node& node, DeviceNaming naming);

}  // namespace gs::kube
