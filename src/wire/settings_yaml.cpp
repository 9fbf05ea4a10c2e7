#include "wire/settings_yaml.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "wire/secret_file.hpp"

namespace gs {
namespace {

constexpr std::size_t kMaxBytes = 1U << 20;

// The text is UTF-8 without control characters: yaml-cpp takes 16-bit encodings too, and what it
// makes of broken ones is nobody's intention.
bool is_plain_text(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte >= 0xfe;
  });
}

// The names that may stand in a section, and what is beneath them.
std::vector<std::string> names_in(const std::string& section) {
  const std::string prefix = section.empty() ? "" : section + ".";
  std::vector<std::string> names;
  for (const SettingKey& key : setting_keys()) {
    const std::string_view path = key.path;
    if (!path.starts_with(prefix)) continue;
    std::string name(path.substr(prefix.size(), path.find('.', prefix.size()) - prefix.size()));
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

bool is_section(const std::string& path) {
  const auto& sections = setting_sections();
  return std::find(sections.begin(), sections.end(), path) != sections.end();
}

// A name for a message: what an operator typed, shortened, without what forges lines.
std::string clean(std::string text) {
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return text;
}

class Decoder {
 public:
  Settings settings;
  std::vector<std::string> errors;

  void section(const YAML::Node& node, const std::string& path, const YAML::Node& heading) {
    if (node.IsNull()) return empty_section(heading, path);
    if (!node.IsMap()) return error(path, heading, "must be a section of keys");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        error(path, entry.first, "a key must be a word");
        continue;
      }
      const std::string& name = entry.first.Scalar();
      const std::string below = path.empty() ? name : path + "." + name;
      if (!seen.insert(name).second)
        error(clean(below), entry.first, "given twice");
      else if (is_section(below))
        section(entry.second, below, entry.first);
      else if (const SettingKey* key = find_setting(below))
        value(entry.second, *key, entry.first);
      else
        unknown(entry.first, path, name);
    }
  }

 private:
  static std::string line_of(const YAML::Node& node) {
    return node.Mark().line < 0 ? "" : fmt::format(", line {}", node.Mark().line + 1);
  }

  void error(const std::string& path, const YAML::Node& node, const std::string& message) {
    errors.push_back(
        fmt::format("{}{}{}{}", path, path.empty() ? "" : ": ", message, line_of(node)));
  }

  void empty_section(const YAML::Node& node, const std::string& path) {
    if (path == "database")
      error(
          path, node,
          "an empty section; give at least database.host for PostgreSQL, or remove it for SQLite");
  }

  void unknown(const YAML::Node& node, const std::string& path, const std::string& name) {
    const std::string full = path.empty() ? name : path + "." + name;
    errors.push_back(fmt::format("{}: unknown key{}{}", clean(full), line_of(node),
                                 did_you_mean(name, names_in(path))));
  }

  void value(const YAML::Node& node, const SettingKey& key, const YAML::Node& name) {
    if (!node.IsScalar() && !node.IsNull())
      return error(key.path, node,
                   fmt::format("must be {}, is a list or a section", rule_text(key)));
    const std::string text = node.IsNull() ? "" : node.Scalar();
    const Status set = set_value(key, settings, text);
    if (!set.ok()) return error(key.path, name, set.error().message);
    if (std::string_view(key.path).starts_with("database.")) settings.database.given = true;
  }
};

Error joined(const std::vector<std::string>& errors) {
  return invalid(fmt::format("{}", fmt::join(errors, "\n")));
}

// Hears nothing; documents are parsed only to see where they end.
class Deaf : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::LoadAll is no way to tell: on a stray comma it finds documents without end.
bool is_one_document(const std::string& yaml) {
  std::istringstream in(yaml);
  YAML::Parser parser(in);
  Deaf deaf;
  return !parser.HandleNextDocument(deaf) || !parser.HandleNextDocument(deaf);
}

Result<YAML::Node> parse(const std::string& yaml) {
  if (yaml.size() > kMaxBytes) return invalid("longer than 1 MiB");
  if (!is_plain_text(yaml)) return invalid("not a text in UTF-8");
  try {
    if (!is_one_document(yaml)) return invalid("must be one YAML document");
    return YAML::Load(yaml);
  } catch (const YAML::Exception& wrong) {
    return invalid(fmt::format("not YAML: {}, line {}", wrong.msg, wrong.mark.line + 1));
  }
}

}  // namespace

Result<Settings> decode_settings(std::string_view yaml) {
  const Result<YAML::Node> root = parse(std::string(yaml));
  if (!root.ok()) return root.error();
  Decoder decoder;
  try {
    decoder.section(*root, "", *root);
  } catch (const YAML::Exception& wrong) {
    return invalid(fmt::format("not YAML: {}", wrong.msg));
  }
  if (!decoder.errors.empty()) return joined(decoder.errors);
  return std::move(decoder.settings);
}

Result<Settings> load_settings(const std::string& path, const Environment& environment) {
  Settings settings;
  if (!path.empty()) {
    const Result<std::string> text = read_text_file(path, kMaxBytes);
    if (!text.ok()) return text.error();
    Result<Settings> decoded = decode_settings(*text);
    if (!decoded.ok()) return invalid(fmt::format("{}: {}", path, decoded.error().message));
    settings = std::move(*decoded);
  }
  if (const Status applied = apply_environment(settings, environment); !applied.ok())
    return applied.error();
  if (const Status valid = validate(settings); !valid.ok()) return valid.error();
  return settings;
}

Result<std::string> database_password(const Settings& settings) {
  if (settings.database.password_file.empty()) return settings.database.password;
  return read_secret(settings.database.password_file);
}

}  // namespace gs
