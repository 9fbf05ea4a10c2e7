#include "apps/gpu_cli/config_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "wire/secret_file.hpp"
#include "wire/yaml_json.hpp"
#include "wire/yaml_text.hpp"

namespace gs::cli {

std::string config_path() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::string base;
  if (xdg != nullptr && *xdg == '/')
    base = xdg;
  else if (home != nullptr && *home != '\0')
    base = std::string(home) + "/.config";
  return base.empty() ? "" : base + "/gpu-scheduler/cli.yaml";
}

Result<ConfigFile> read_config(std::string_view yaml) {
  Result<Json> json = yaml_to_json(yaml);
  if (!json) return json.error();
  ConfigFile config;
  if (json->is_null()) return config;
  ObjectReader in(*json, "the file");
  in.optional("server", config.server);
  in.optional("api_key", config.api_key);
  in.optional("ca_file", config.ca_file);
  in.optional("tenant_id", config.tenant_id);
  if (Status s = in.finish(); !s) return s.error();
  return config;
}

std::string config_text(const ConfigFile& config) {
  std::string out;
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) out += std::string(key) + ": " + Json(value).dump() + "\n";
  };
  put("server", config.server);
  put("api_key", config.api_key);
  put("ca_file", config.ca_file);
  put("tenant_id", config.tenant_id);
  return out;
}

Result<ConfigFile> load_config(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return ConfigFile{};
  Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Result<ConfigFile> config = read_config(*text);
  if (!config) return invalid(path + ": " + config.error().message);
  return config;
}

Status save_config(const std::string& path, const ConfigFile& config) {
  const auto failed = [&](const std::string& what) {
    return Error{ErrorCode::Internal, "cannot write " + path + ": " + what};
  };
  if (path.empty()) return failed("neither XDG_CONFIG_HOME nor HOME is set");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return failed(error.message());
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed(std::strerror(errno));
  const std::string text = config_text(config);
  const bool written = ::write(file, text.data(), text.size()) == std::ssize(text);
  const bool closed = ::close(file) == 0;
  if (!written || !closed) return failed(std::strerror(errno));
  std::filesystem::rename(fresh, path, error);
  if (error) return failed(error.message());
  return ok_status();
}

}  // namespace gs::cli
