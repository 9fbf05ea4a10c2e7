// The page that Prometheus reads: the service's Figures, the doors' registry and the process.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "drivers/metrics/process.hpp"
#include "net/metrics.hpp"
#include "service/figures.hpp"

namespace gs {

// `name_space` is the first part of all names but those of the process.
std::string exposition(const std::string& name_space, const Figures& figures,
                       const Metrics& registry, const ProcessFigures& process);

// The same as a map from a sample's name and labels to its value, for those whose name begins with
// `prefix`.
std::map<std::string, double> sample_values(const std::string& exposition, std::string_view prefix);

}  // namespace gs
