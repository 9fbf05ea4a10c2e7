// Settings as YAML: reading them, and writing them with their documentation.
//
// Reading is validating: unknown keys, keys given twice, wrong types and values out of range are
// errors that name key, line and rule. All of them are reported at once, a line each.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/settings.hpp"
#include "model/settings_keys.hpp"

namespace gs {

// The text of a file over the defaults. Rules about several keys are left to validate(): the
// environment may still change some of them.
Result<Settings> decode_settings(std::string_view yaml);

// Defaults, then the file (an empty path: none), then the environment, then validate().
Result<Settings> load_settings(const std::string& path, const Environment& environment);

// The password of the database, wherever it is kept.
Result<std::string> database_password(const Settings& settings);

// All keys with their documentation and defaults, as a file that can be read again. The sections
// whose mere presence means something are commented out.
std::string describe_settings();
// All keys with the values that are in force; secrets are left out.
std::string settings_text(const Settings& settings);
// The table of docs/configuration.md.
std::string settings_markdown();

}  // namespace gs
