// The machine's real GPUs, through NVIDIA's management library.
#pragma once

#include <memory>
#include <string>

#include "agent/inventory.hpp"
#include "base/result.hpp"

namespace gs::agent {

// An error says what is missing: no driver, or one that does not answer.
Result<std::unique_ptr<GpuSource>> nvml_gpus();

// "NVIDIA A100-SXM4-80GB" -> "A100-SXM4-80GB", "Tesla V100-SXM2-32GB" -> "V100-SXM2-32GB".
std::string canonical_gpu_model(const std::string& name);

// Whether this XID means that the GPU must not be used. Those that a program brings about by its
// own errors, and those that tell of an error which was contained, do not.
bool xid_breaks_gpu(unsigned long long xid);

// Who is linked to whom. Bandwidths are of both directions together, as data sheets and users give
// them: 600 for an A100, 900 for an H100.
struct LinkFacts {
  int switch_links = 0;         // links into an NVSwitch
  std::vector<int> peer_links;  // links straight to GPU j
  int link_gbps = 0;            // GB/s of one link
};
// GB/s between all pairs by NVLink, row by row; 0: not linked.
std::vector<int> nvlink_matrix(const std::vector<LinkFacts>& gpus);
// The name of each GPU's island; empty: no NVLink.
std::vector<std::string> islands(const std::vector<int>& matrix, std::size_t count);
// Of one link of a GPU of this compute capability. The driver's number of an NVLink version is no
// generation, and some drivers give an H100 that of its successor.
int nvlink_gbps(int major, int minor);

}  // namespace gs::agent
