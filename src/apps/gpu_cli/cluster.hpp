// Nodes and GPUs as words, for lists and for the live view.
#pragma once

#include <string>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {

std::string bar(double part, std::size_t width);  // "███▌····"; part is 0..1
Cell node_state(const Json& node);
std::string gpu_models(const Json& node);
std::string gpu_table(const Cli& cli, const Json& gpus);

}  // namespace gs::cli
