// Values that tests start from.
#pragma once

#include <string>

#include "model/node.hpp"

namespace gs {

// A node with so many whole GPUs and nothing else said about it.
inline Node sample_node(const std::string& name, int gpus, const std::string& model = "H100") {
  Node node;
  node.name = name;
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.index = i;
    gpu.model = model;
    gpu.memory_mib = 80'000;
    node.gpus.push_back(gpu);
  }
  return node;
}

}  // namespace gs
