#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "agent/nvml_gpus.hpp"

namespace gs::agent {

std::string canonical_gpu_model(const std::string& name) {
  std::string_view rest = name;
  for (const std::string_view brand : {"NVIDIA ", "Tesla ", "GeForce ", "Quadro "})
    if (rest.starts_with(brand)) rest.remove_prefix(brand.size());
  std::string model(rest);
  std::replace(model.begin(), model.end(), ' ', '-');
  return model;
}

bool xid_breaks_gpu(unsigned long long xid) {
  switch (xid) {
    case 13:   // graphics engine exception
    case 31:   // memory page fault
    case 43:   // the program stopped processing
    case 45:   // clean-up after a program
    case 68:   // video processor exception
    case 109:  // context switch timeout
      return false;
    case 63:  // a row was remapped: healed
    case 92:  // many corrected errors
    case 94:  // contained: it ended the program that hit it, and no other
      return false;
    default:
      return true;
  }
}

int nvlink_gbps(int major, int minor) {
  if (major < 6) return 0;
  if (major == 6) return 40;
  if (major == 8 && minor > 0) return 28;  // bridges of workstation GPUs
  return major < 10 ? 50 : 100;
}

std::vector<int> nvlink_matrix(const std::vector<LinkFacts>& gpus) {
  const std::size_t count = gpus.size();
  std::vector<int> matrix(count * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const int by_switch = std::min(gpus[i].switch_links * gpus[i].link_gbps,
                                     gpus[j].switch_links * gpus[j].link_gbps);
      const int direct = j < gpus[i].peer_links.size() ? gpus[i].peer_links[j] : 0;
      matrix[i * count + j] = std::max(by_switch, direct * gpus[i].link_gbps);
    }
  }
  return matrix;
}

std::vector<std::string> islands(const std::vector<int>& matrix, std::size_t count) {
  std::vector<std::size_t> leader(count);
  for (std::size_t i = 0; i < count; ++i) leader[i] = i;
  for (bool changed = true; changed;) {  // as many rounds as the longest chain: a handful
    changed = false;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        if (matrix[i * count + j] > 0 && leader[j] > leader[i]) {
          leader[j] = leader[i];
          changed = true;
        } else if (matrix[i * count + j] > 0 && leader[i] > leader[j]) {
          leader[i] = leader[j];
          changed = true;
        }
  }
  std::vector<std::string> names(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = matrix.begin() + static_cast<std::ptrdiff_t>(i * count);
    const bool linked = std::any_of(row, row + static_cast<std::ptrdiff_t>(count),
                                    [](int gbps) { return gbps > 0; });
    if (linked) names[i] = fmt::format("nvlink-{}", leader[i]);
  }
  return names;
}

}  // namespace gs::agent
