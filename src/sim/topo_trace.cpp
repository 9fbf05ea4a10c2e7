#include "sim/topo_trace.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/csv.hpp"

namespace gs::topo {
namespace {

constexpr double kMaxSeconds = 1e12;

Result<std::int64_t> milliseconds_in(const Csv& csv, std::size_t row, int column) {
  const std::string& text = csv.rows[row][static_cast<std::size_t>(column)];
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0) ||
      seconds > kMaxSeconds)
    return invalid(
        fmt::format("{}: line {}: \"{}\" is no number of seconds", csv.name, row + 2, text));
  return std::llround(seconds * 1000);
}

Result<std::vector<int>> columns(const Csv& csv, const std::vector<std::string>& names) {
  std::vector<int> found;
  for (const std::string& name : names) {
    found.push_back(csv.column(name));
    if (found.back() < 0) return invalid(fmt::format("{}: no column \"{}\"", csv.name, name));
  }
  return found;
}

Result<std::vector<Host>> read_hosts(const std::filesystem::path& path) {
  const Result<Csv> csv = read_csv(path);
  if (!csv) return csv.error();
  const auto at = columns(*csv, {"host", "psw", "leaf"});
  if (!at) return at.error();
  std::map<int, std::string> pod_of;  // by leaf
  std::vector<Host> hosts;
  for (std::size_t row = 0; row < csv->rows.size(); ++row) {
    const auto& fields = csv->rows[row];
    const Result<std::int64_t> leaf = to_number(*csv, row, (*at)[2]);
    if (!leaf) return leaf.error();
    const std::string& pod = fields[static_cast<std::size_t>((*at)[1])];
    const auto [it, added] = pod_of.try_emplace(static_cast<int>(*leaf), pod);
    if (!added && it->second != pod)
      return invalid(
          fmt::format("{}: line {}: leaf {} lies in two pods", csv->name, row + 2, *leaf));
    hosts.push_back({fields[static_cast<std::size_t>((*at)[0])], 0, static_cast<int>(*leaf)});
  }
  if (hosts.empty()) return invalid(fmt::format("{}: no hosts", csv->name));
  std::map<std::string, int> number;
  for (const auto& [leaf, pod] : pod_of) number.try_emplace(pod, static_cast<int>(number.size()));
  for (Host& host : hosts) host.pod = number[pod_of[host.leaf]];
  return hosts;
}

Result<std::vector<Gang>> read_gangs(const std::filesystem::path& path, std::size_t hosts) {
  const Result<Csv> csv = read_csv(path);
  if (!csv) return csv.error();
  const auto at = columns(*csv, {"job_id", "arrival_s", "hosts", "duration_s"});
  if (!at) return at.error();
  std::vector<Gang> gangs;
  for (std::size_t row = 0; row < csv->rows.size(); ++row) {
    const auto arrival = milliseconds_in(*csv, row, (*at)[1]);
    const auto size = to_number(*csv, row, (*at)[2]);
    const auto duration = milliseconds_in(*csv, row, (*at)[3]);
    if (!arrival) return arrival.error();
    if (!size) return size.error();
    if (!duration) return duration.error();
    if (*size < 1 || *size > static_cast<std::int64_t>(hosts))
      return invalid(
          fmt::format("{}: line {}: {} hosts, there are {}", csv->name, row + 2, *size, hosts));
    gangs.push_back({csv->rows[row][static_cast<std::size_t>((*at)[0])], Instant{*arrival},
                     static_cast<int>(*size), Duration{*duration}});
  }
  if (gangs.empty()) return invalid(fmt::format("{}: no jobs", csv->name));
  std::stable_sort(gangs.begin(), gangs.end(),
                   [](const Gang& a, const Gang& b) { return a.arrival < b.arrival; });
  return gangs;
}

Result<std::filesystem::path> jobs_file(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("gang_jobs")) found.push_back(entry.path());
  if (error) return not_found(fmt::format("{}: {}", folder.string(), error.message()));
  if (found.size() != 1)
    return invalid(
        fmt::format("{}: {} files gang_jobs*, one is wanted", folder.string(), found.size()));
  return found[0];
}

}  // namespace

Result<Trace> read_trace(const std::filesystem::path& folder) {
  Result<std::filesystem::path> jobs = jobs_file(folder);
  if (!jobs) return jobs.error();
  Result<std::vector<Host>> hosts = read_hosts(folder / "topo.csv");
  if (!hosts) return hosts.error();
  Result<std::vector<Gang>> gangs = read_gangs(*jobs, hosts->size());
  if (!gangs) return gangs.error();
  return Trace{std::move(*hosts), std::move(*gangs)};
}

}  // namespace gs::topo
