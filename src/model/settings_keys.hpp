// The one table of all keys that an operator can set. YAML, environment variables, defaults,
// documentation, reloading and "has no effect" are all read from it.
//
// A key's path is its place in the file ("api.http_port"); its environment variable follows from
// the path (GPU_SCHEDULER_API_HTTP_PORT).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "model/settings.hpp"

namespace gs {

using SettingRef = std::variant<bool*, int*, std::int64_t*, double*, std::string*, Toggle*>;

struct SettingKey {
  const char* path;
  SettingRef (*ref)(Settings&);
  const char* help;
  // What a value may be: a range for numbers, words separated by spaces for texts.
  double min = 0;
  double max = 0;
  const char* choices = "";
  bool reload = false;     // may change while the service runs
  bool no_effect = false;  // accepted for the sake of existing files; nothing here uses it
  bool secret = false;     // never printed
};

const std::vector<SettingKey>& setting_keys();
const SettingKey* find_setting(std::string_view path);
// The sections in the order of the table; "scheduler.weights" is one too.
const std::vector<std::string>& setting_sections();

std::string environment_name(const SettingKey& key);
// Takes the value over if it is one that this key may have; the message is the rule alone
// ("must be a whole number from 1 to 65535, is `x`").
Status set_value(const SettingKey& key, Settings& settings, std::string_view text);
std::string value_text(const SettingKey& key, const Settings& settings);
// The rule that every value of this key keeps: "a whole number from 1 to 65535".
std::string rule_text(const SettingKey& key);
// Whether the value that is there keeps the rule.
Status check_value(const SettingKey& key, const Settings& settings);

// "; did you mean X?" with the nearest of the names, or nothing where none is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names);

using Environment = std::vector<std::pair<std::string, std::string>>;
// Applies every GPU_SCHEDULER_<SECTION>_<KEY>. A variable that begins like one of a section and is
// none is an error: a typo there would go unnoticed otherwise.
Status apply_environment(Settings& settings, const Environment& environment);

// Keys that are set to something else than their default although nothing here uses them.
std::vector<std::string> keys_without_effect(const Settings& settings);

struct SettingsChange {
  std::vector<std::string> reloadable;  // take effect at once
  std::vector<std::string> restart;     // only after a restart
};
SettingsChange compare(const Settings& before, const Settings& after);

}  // namespace gs
