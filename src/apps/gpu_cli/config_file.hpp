// $XDG_CONFIG_HOME/gpu-scheduler/cli.yaml: where the server is, and who we are to it. The file
// holds a key, so nobody but its owner may read it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gs::cli {

struct ConfigFile {
  std::string server, api_key, ca_file, tenant_id;
  bool operator==(const ConfigFile&) const = default;
};

// From XDG_CONFIG_HOME, or HOME; "" where there is neither.
std::string config_path();

Result<ConfigFile> read_config(std::string_view yaml);
std::string config_text(const ConfigFile& config);

// A file that is not there is an empty one.
Result<ConfigFile> load_config(const std::string& path);
// Mode 0600, whole or not at all.
Status save_config(const std::string& path, const ConfigFile& config);

}  // namespace gs::cli
