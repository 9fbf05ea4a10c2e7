// The one binary under other names: bin/scheduler, bin/controller, bin/agent and bin/webhook are
// links to it, and each name stands for a subcommand. A subcommand that is written out counts more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gs {

// The arguments (without the program's name) as `gpu-scheduler` would have been given them.
//   scheduler --kubeconfig=F ...   kube, by any flag that only `kube` has; else serve
//   controller ...                 kube; a second scheduler beside the first, so on a port of its
//   own agent, webhook ...             the subcommand of that name
std::vector<std::string> arguments_by_name(std::string_view program,
                                           std::vector<std::string> arguments,
                                           const std::vector<std::string>& subcommands);

}  // namespace gs
