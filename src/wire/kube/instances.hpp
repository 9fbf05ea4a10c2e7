// MIG instances as they are written on a pod: "0:1g.10gb:4 2:3g.40gb:0", each the GPU, the profile
// and the first memory slot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/command.hpp"

namespace gs::kube {

std::string instances_text(const std::vector<MigPlace>& places);
Result<std::vector<MigPlace>> parse_instances(std::string_view text);

}  // namespace gs::kube
