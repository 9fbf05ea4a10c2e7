#include "apps/gpu_scheduler/device_naming_flag.hpp"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gs {

void add_device_naming_flag(CLI::App& command, std::optional<kube::DeviceNaming>& naming) {
  std::vector<std::string> words;
  for (const auto& [word, value] : kube::kDeviceNamings) words.emplace_back(word);
  command
      .add_option_function<std::string>(
          "--device-naming",
          [&naming](const std::string& text) {
            for (const auto& [word, value] : kube::kDeviceNamings)
              if (text == word) naming = value;
          },
          "How pods' devices are called: index, as on the node (default), or uuid")
      ->check(CLI::IsMember(words));
}

}  // namespace gs
