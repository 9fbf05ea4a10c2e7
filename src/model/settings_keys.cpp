#include "model/settings_keys.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "base/nearest_word.hpp"

namespace gs {
namespace {

// References are made for a changeable Settings; here they are only read through.
SettingRef read_ref(const SettingKey& key, const Settings& settings) {
  return key.ref(const_cast<Settings&>(settings));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

std::vector<std::string> words(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

template <typename T>
bool parse(std::string_view text, T& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse(std::string_view text, bool& out) {
  for (const char* yes : {"true", "yes", "on", "True", "TRUE", "Yes", "On", "1"})
    if (text == yes) return out = true, true;
  for (const char* no : {"false", "no", "off", "False", "FALSE", "No", "Off", "0"})
    if (text == no) return out = false, true;
  return false;
}

bool parse(std::string_view text, Toggle& out) {
  if (text == "auto") return out = Toggle::Auto, true;
  bool on = false;
  if (!parse(text, on)) return false;
  out = on ? Toggle::On : Toggle::Off;
  return true;
}

bool parse(std::string_view text, std::string& out) {
  out = text;
  return true;
}

template <typename T>
bool allowed(const SettingKey& key, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    const std::vector<std::string> choices = words(key.choices);
    // A control character in a name, path or address is never meant, and forges lines of logs.
    const bool clean = std::none_of(value.begin(), value.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    return clean &&
           (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end());
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isfinite(value) && value >= key.min && value <= key.max;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Toggle>) {
    return true;
  } else {
    return static_cast<double>(value) >= key.min && static_cast<double>(value) <= key.max;
  }
}

std::string shown(const SettingKey& key, std::string_view text) {
  if (key.secret) return "(hidden)";
  std::string out = "`";
  for (const char c : text.substr(0, 60)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out + (text.size() > 60 ? "...`" : "`");
}

Error broken_rule(const SettingKey& key, std::string_view text) {
  std::string message = fmt::format("must be {}, is {}", rule_text(key), shown(key, text));
  const std::vector<std::string> choices = words(key.choices);
  if (!choices.empty()) message += did_you_mean(text, choices);
  return invalid(std::move(message));
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(Toggle value) { return to_string(value); }
std::string text_of(const std::string& value) { return value; }
template <typename T>
std::string text_of(T value) {
  return fmt::format("{}", value);
}

}  // namespace

const SettingKey* find_setting(std::string_view path) {
  for (const SettingKey& key : setting_keys())
    if (key.path == path) return &key;
  return nullptr;
}

const std::vector<std::string>& setting_sections() {
  static const std::vector<std::string> sections = [] {
    std::vector<std::string> out;
    for (const SettingKey& key : setting_keys()) {
      const std::string_view path = key.path;
      for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
        if (std::string name(path.substr(0, dot));
            std::find(out.begin(), out.end(), name) == out.end())
          out.push_back(std::move(name));
    }
    return out;
  }();
  return sections;
}

Status set_value(const SettingKey& key, Settings& settings, std::string_view text) {
  return std::visit(
      [&](auto* place) -> Status {
        auto value = *place;
        if (!parse(text, value) || !allowed(key, value)) return broken_rule(key, text);
        *place = std::move(value);
        return ok_status();
      },
      key.ref(settings));
}

Status check_value(const SettingKey& key, const Settings& settings) {
  return std::visit(
      [&](auto* place) -> Status {
        if (!allowed(key, *place)) return broken_rule(key, text_of(*place));
        return ok_status();
      },
      read_ref(key, settings));
}

std::string value_text(const SettingKey& key, const Settings& settings) {
  return std::visit([](auto* place) { return text_of(*place); }, read_ref(key, settings));
}

std::string rule_text(const SettingKey& key) {
  const Settings defaults;
  const SettingRef ref = read_ref(key, defaults);
  if (std::holds_alternative<bool*>(ref)) return "true or false";
  if (std::holds_alternative<Toggle*>(ref)) return "auto, on or off";
  if (std::holds_alternative<double*>(ref))
    return fmt::format("a number from {} to {}", key.min, key.max);
  if (std::holds_alternative<std::string*>(ref)) {
    const std::vector<std::string> choices = words(key.choices);
    return choices.empty() ? "a text without control characters"
                           : fmt::format("one of {}", fmt::join(choices, ", "));
  }
  return fmt::format("a whole number from {:.0f} to {:.0f}", key.min, key.max);
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string_view meant = nearest_word(wrong, names);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

namespace {

// Whether another setting has made this one meaningless.
bool is_idle(std::string_view path, const Settings& settings) {
  if (path == "store.path") return settings.database.given;
  if (path == "api.tls_cert_path" || path == "api.tls_key_path") return !settings.api.enable_tls;
  if (path == "metrics.port" || path == "metrics.path" || path == "metrics.namespace")
    return !settings.metrics.enabled;
  if (path == "agent.simulate" || path == "agent.node_id" || path == "agent.container_runtime")
    return settings.agent.local == Toggle::Off;
  return false;
}

}  // namespace

std::vector<std::string> keys_without_effect(const Settings& settings) {
  const Settings defaults;
  std::vector<std::string> out;
  for (const SettingKey& key : setting_keys())
    if ((key.no_effect || is_idle(key.path, settings)) &&
        value_text(key, settings) != value_text(key, defaults))
      out.emplace_back(key.path);
  return out;
}

SettingsChange compare(const Settings& before, const Settings& after) {
  SettingsChange change;
  for (const SettingKey& key : setting_keys())
    if (!key.no_effect && value_text(key, before) != value_text(key, after))
      (key.reload ? change.reloadable : change.restart).emplace_back(key.path);
  return change;
}

}  // namespace gs
