// --device-naming, as the scheduler and the webhook take it: both have to name devices alike.
#pragma once

#include <optional>

#include "wire/kube/device_names.hpp"

namespace CLI {
class App;
}

namespace gs {

void add_device_naming_flag(CLI::App& command, std::optional<kube::DeviceNaming>& naming);

}  // namespace gs
