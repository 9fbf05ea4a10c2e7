#include "placement/policies/policy.hpp"

namespace gs {

const std::vector<PolicyRow>& node_policies() {
  static const std::vector<PolicyRow> rows = {
      {"default", "where the tasks that usually come lose least", make_default_policy},
      {"fgd", "least new fragmentation (Weng et al., USENIX ATC 2023)", make_fgd_policy},
      {"bestfit", "least CPU and GPU left over", make_bestfit_policy},
  };
  return rows;
}

const PolicyRow* find_node_policy(const std::string& name) {
  for (const PolicyRow& row : node_policies())
    if (name == row.name) return &row;
  return nullptr;
}

}  // namespace gs
