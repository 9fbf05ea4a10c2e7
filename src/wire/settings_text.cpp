// Settings written out: as YAML that can be read again, and as the documentation's table.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "wire/settings_yaml.hpp"

namespace gs {
namespace {

std::string yaml_value(const SettingKey& key, const Settings& settings) {
  Settings copy = settings;
  std::string text = value_text(key, settings);
  if (!std::holds_alternative<std::string*>(key.ref(copy))) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('.') + 1)); }

std::string_view indent_of(std::string_view path) {
  return std::string_view("        ")
      .substr(0, 2 * static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')));
}

// Headings of the sections that `path` is in and `before` was not.
std::string headings(const std::string& path, const std::string& before, const char* comment) {
  std::string out;
  for (const std::string& section : setting_sections())
    if (path.starts_with(section + ".") && !before.starts_with(section + ".")) {
      if (section.find('.') == section.npos) out += "\n";
      out += fmt::format("{}{}{}:\n", comment, indent_of(section), name_of(section));
    }
  return out;
}

std::string flags_of(const SettingKey& key) {
  std::string out;
  if (key.no_effect) out += " Has no effect.";
  if (key.reload) out += " Read again on SIGHUP.";
  return out;
}

template <typename Line>
std::string all_keys(const Settings& settings, Line line) {
  std::string out, before;
  for (const SettingKey& key : setting_keys()) {
    const std::string path = key.path;
    // A database section, even with all its defaults, means PostgreSQL.
    const bool off = path.starts_with("database.") && !settings.database.given;
    const char* comment = off ? "# " : "";
    out += headings(path, before, comment);
    out += line(key, fmt::format("{}{}", comment, indent_of(path)));
    before = path;
  }
  return out;
}

std::string may_be(const SettingKey& key) {
  Settings defaults;
  const bool any = std::holds_alternative<std::string*>(key.ref(defaults)) && *key.choices == 0;
  return any ? "text" : rule_text(key);
}

}  // namespace

std::string describe_settings() {
  const Settings defaults;
  return "# Every setting of `gpu-scheduler serve`, with its default.\n" +
         all_keys(defaults, [&](const SettingKey& key, const std::string& start) {
           return fmt::format("{0}# {1}{2}\n{0}{3}: {4}\n", start, key.help, flags_of(key),
                              name_of(key.path), yaml_value(key, defaults));
         });
}

std::string settings_text(const Settings& settings) {
  return all_keys(settings, [&](const SettingKey& key, const std::string& start) {
    if (key.secret) return fmt::format("{}# {}: (hidden)\n", start, name_of(key.path));
    return fmt::format("{}{}: {}\n", start, name_of(key.path), yaml_value(key, settings));
  });
}

std::string settings_markdown() {
  const Settings defaults;
  std::string out, section = "?";
  for (const SettingKey& key : setting_keys()) {
    std::string_view path = key.path;
    const std::string top(path.substr(0, path.find('.') == path.npos ? 0 : path.find('.')));
    if (top != section) {
      section = top;
      if (!top.empty()) out += fmt::format("\n### {}\n\n", top);
      out += "| key | default | may be | reload | meaning |\n|---|---|---|---|---|\n";
    }
    out += fmt::format("| `{}` | `{}` | {} | {} | {}{} |\n", path, yaml_value(key, defaults),
                       may_be(key), key.reload ? "yes" : "", key.help,
                       key.no_effect ? " **Has no effect.**" : "");
  }
  return out;
}

}  // namespace gs
