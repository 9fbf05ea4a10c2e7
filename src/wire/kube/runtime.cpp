#include "wire/kube/runtime.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<char, std::int64_t> kUnits[] = {  // the largest first, seconds of each
    {'d', 86'400},
    {'h', 3'600},
    {'m', 60},
    {'s', 1}};
constexpr std::int64_t kMaxSeconds = 3650LL * 86'400;

}  // namespace

Result<Duration> parse_runtime(std::string_view text) {
  const Error bad = invalid(
      "must be a time such as 90m, 2h30m, 1d, 3600s or 3600 (seconds), more than 0 and at most "
      "3650d");
  std::int64_t total = 0;
  const auto* unit = std::begin(kUnits);
  for (std::string_view rest = text; !rest.empty();) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || number < 0 || number > kMaxSeconds) return bad;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool is_bare = rest.empty() && unit == std::begin(kUnits);
    const char name = is_bare ? 's' : rest.empty() ? '?' : rest.front();
    unit =
        std::find_if(unit, std::end(kUnits), [&](const auto& pair) { return pair.first == name; });
    if (unit == std::end(kUnits) || number > (kMaxSeconds - total) / unit->second) return bad;
    total += number * unit->second;
    ++unit;  // each once, the largest first
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (total == 0) return bad;
  return seconds(total);
}

Result<std::optional<Duration>> expected_runtime(const Pod& pod, const Owners& owners) {
  std::optional<Duration> least;
  const auto at_most = [&](std::optional<Duration> runtime) {
    if (runtime && (!least || *runtime < *least)) least = runtime;
  };
  if (const Found found = find_annotation(pod.meta, owners, kRuntimeAnnotation); found.value) {
    const Result<Duration> said = parse_runtime(*found.value);
    if (!said)
      return invalid(std::string("annotation ") + kRuntimeAnnotation + " " + said.error().message +
                     ", got '" + found.value->substr(0, 80) + "'");
    at_most(*said);
  }
  at_most(pod.deadline);
  for (const Workload* owner : owners) at_most(owner->deadline);
  return least;
}

}  // namespace gs::kube
