// Words for explanations: what a shape needs, what a node lacks, what a filter asked for.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.hpp"
#include "model/why.hpp"

namespace gs {

// "2 H100 GPUs", "500 milli of 1 GPU", "1 x MIG 3g.40gb", "4 cores".
std::string need_words(const Shape& shape);

// What a node that passed all filters has too little of, and the constraint that this is. `has`
// reaches `needs` only where the devices refuse for another reason.
struct Lack {
  Candidate candidate;
  Constraint constraint = Constraint::Capacity;
  std::string need;  // to be added to need_words: " with adjacent ids", " and 8 cores"
};
Lack lack_of(const Cluster& cluster, const NodeState& node, const Shape& shape);

// "2 have no B200 GPU, 1 have a taint that is not tolerated"
std::string filter_words(const std::vector<FilterCount>& filters, const Shape& shape);

std::string count_of(std::int64_t n, const std::string& one);

}  // namespace gs
