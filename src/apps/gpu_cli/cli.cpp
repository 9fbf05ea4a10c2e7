#include "apps/gpu_cli/cli.hpp"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "net/error_codes.hpp"
#include "wire/clock_json.hpp"
#include "wire/yaml_text.hpp"

namespace gs::cli {

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Cli::tell(const Error& error) const {
  const bool in_colour = !no_color && std::getenv("NO_COLOR") == nullptr && isatty(STDERR_FILENO);
  const auto end = std::min(error.message.find('\n'), error.message.size());
  std::string message = paint(error.message.substr(0, end), Paint::Red, in_colour);
  fmt::print(stderr, "gpu-cli: {}{}\n", message, error.message.substr(end));
  return outside_code(error.code).exit;
}

int Cli::run() {
  if (local) {
    const Result<int> code = local();
    return code ? *code : tell(code.error());
  }
  if (!command) return 0;
  Result<ConfigFile> config = load_config(config_path());
  if (!config) return tell(config.error());
  Result<Access> access = find_access(server, *config);
  if (!access) return tell(access.error());
  Session session(std::move(*access));
  const Result<int> code = command(session);
  return code ? *code : tell(code.error());
}

void Cli::show(const Json& data, const std::function<std::string()>& words) const {
  if (output == "json")
    put(data.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  else if (output == "yaml")
    put(yaml_text(data));
  else
    put(words());
}

// ---------------------------------------------------------------- reading answers

std::string text_of(const Json& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::optional<Instant> time_of(const Json& object, const char* field) {
  const std::string text = text_of(object, field);
  return text.empty() ? std::nullopt : parse_time(text);
}

const Json& list_of(const Json& object, const char* field) {
  static const Json nothing = Json::array();
  const auto found = object.is_object() ? object.find(field) : object.end();
  return found != object.end() && found->is_array() ? *found : nothing;
}

// ---------------------------------------------------------------- words

std::string when(const Cli& cli, const Json& object, const char* field, Instant now) {
  const auto time = time_of(object, field);
  if (!time) return "-";
  return cli.is_wide() ? date_text(*time) : ago(*time, now);
}

Cell state_cell(const Json& job) {
  std::string state = text_of(job, "state");
  const bool waits = state == "pending" || state == "preempted";
  Paint paint = state == "running" || state == "scheduled" ? Paint::Green
                : state == "failed"                        ? Paint::Red
                : waits                                    ? Paint::Yellow
                                                           : Paint::Dim;
  if (waits && job.value("held", false)) state = "held";
  if (!waits && job.value("stopping", false) && state == "running") state = "stopping";
  return {std::move(state), paint};
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string number_text(double value) {
  if (std::abs(value - std::round(value)) < 1e-9) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{:.2f}", value);
  while (text.ends_with('0')) text.pop_back();
  return text;
}

// "2", "0.5", "2 x 0.5", "1 1g.10gb"
std::string gpus_text(const Json& job) {
  std::string out = number_text(number_of(job, "gpu_count"));
  if (const double milli = number_of(job, "gpu_milli"); milli > 0)
    out = (out == "1" ? "" : out + " x ") + number_text(milli / 1000);
  if (const std::string mig = text_of(job, "mig_profile"); !mig.empty()) out += " " + mig;
  return out;
}

std::string memory_text(double mib) {
  if (mib < 1024) return fmt::format("{:.0f} MiB", mib);
  if (mib < 1024 * 1024) return fmt::format("{:.0f} GiB", mib / 1024);
  return fmt::format("{:.1f} TiB", mib / 1024 / 1024);
}

std::string numbers_text(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    out += out.empty() ? "" : ",";
    out += end > i ? fmt::format("{}-{}", numbers[i], numbers[end]) : std::to_string(numbers[i]);
    i = end + 1;
  }
  return out;
}

}  // namespace gs::cli
