#include "apps/gpu_cli/amounts.hpp"

#include <charconv>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "wire/yaml_json.hpp"

namespace gs::cli {
namespace {

constexpr std::int64_t kMostMib = 1LL << 40;

// The parts between lines of "---".
std::vector<std::string> documents(std::string_view text) {
  std::vector<std::string> out(1);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == "---")
      out.emplace_back();
    else
      out.back().append(line).append("\n");
  }
  return out;
}

void add_jobs_of(const Json& value, std::vector<Json>& jobs) {
  const bool is_list = value.is_object() && value.size() == 1 && value.contains("jobs");
  const Json& list = is_list ? value["jobs"] : value;
  if (list.is_array())
    for (const Json& job : list) jobs.push_back(job);
  else if (!list.is_null())
    jobs.push_back(list);
}

}  // namespace

Result<std::int64_t> parse_mib(std::string_view text) {
  const Error wrong =
      invalid(fmt::format("'{}' is not an amount of memory such as 64G or 512M", text));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || number > kMostMib) return wrong;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const std::string_view rest : {"iB", "B", "i"})
    if (unit.size() > 1 && unit.ends_with(rest)) {
      unit.remove_suffix(rest.size());
      break;
    }
  const std::int64_t factor = unit.empty() || unit == "M" || unit == "m" ? 1
                              : unit == "G" || unit == "g"               ? 1 << 10
                              : unit == "T" || unit == "t"               ? 1 << 20
                                                                         : 0;
  if (factor == 0 || number > kMostMib / factor) return wrong;
  return number * factor;
}

Result<Json> parse_pairs(const char* flag, const std::vector<std::string>& texts, bool inherit) {
  Json out = Json::object();
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const char* here = inherit && equals == text.npos ? std::getenv(key.c_str()) : nullptr;
    if (key.empty() || (equals == text.npos && here == nullptr))
      return invalid(fmt::format("{} takes KEY=VALUE, got '{}'", flag, text));
    out[key] = equals == text.npos ? std::string(here) : text.substr(equals + 1);
  }
  return out;
}

Result<std::vector<Json>> parse_jobs(std::string_view text) {
  std::vector<Json> jobs;
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text[first] == '[')) {
    Result<Json> json = parse_json(text);
    if (!json) return json.error();
    add_jobs_of(*json, jobs);
  } else {
    for (const std::string& document : documents(text)) {
      Result<Json> json = yaml_to_json(document);
      if (!json) return json.error();
      add_jobs_of(*json, jobs);
    }
  }
  for (const Json& job : jobs)
    if (!job.is_object()) return invalid("a job must be an object");
  if (jobs.empty()) return invalid("there is no job in it");
  return jobs;
}

std::string unique_key() {
  std::random_device random;
  std::string out;
  for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", random());
  return out;
}

}  // namespace gs::cli
