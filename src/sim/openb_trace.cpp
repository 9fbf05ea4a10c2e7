#include "sim/openb_trace.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "model/resources.hpp"
#include "sim/csv.hpp"

namespace gs::openb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPodsPrefix = "openb_pod_list_";
constexpr const char* kCsv = ".csv.gz";
constexpr std::int64_t kMaxGpusPerPod = 64;

Result<int> needed(const Csv& csv, const char* column) {
  const int at = csv.column(column);
  if (at < 0) return invalid(fmt::format("{}: no column '{}'", csv.name, column));
  return at;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(by, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// One column per seed ("seed42"); columns may end early.
Result<std::map<int, std::vector<std::uint32_t>>> read_orders(const fs::path& path,
                                                              std::size_t below) {
  const Result<Csv> csv = read_csv(path);
  if (!csv) return csv.error();
  std::map<int, std::vector<std::uint32_t>> orders;
  for (std::size_t c = 0; c < csv->header.size(); ++c) {
    if (csv->header[c].rfind("seed", 0) != 0)
      return invalid(fmt::format("{}: column '{}' is not a seed", csv->name, csv->header[c]));
    std::vector<std::uint32_t>& order = orders[std::atoi(csv->header[c].c_str() + 4)];
    for (std::size_t r = 0; r < csv->rows.size() && !csv->rows[r][c].empty(); ++r) {
      const Result<std::int64_t> value = to_number(*csv, r, static_cast<int>(c));
      if (!value) return value.error();
      if (*value < 0 || *value >= static_cast<std::int64_t>(below))
        return invalid(
            fmt::format("{}: row {}: {} is not below {}", csv->name, r + 1, *value, below));
      order.push_back(static_cast<std::uint32_t>(*value));
    }
  }
  return orders;
}

// The workload's own file, or the one of the default workload.
fs::path order_file(const fs::path& folder, const char* what, const std::string& workload) {
  const fs::path own = folder / "arrivals" / fmt::format("{}_{}{}", what, workload, kCsv);
  return fs::exists(own) ? own : folder / "arrivals" / fmt::format("{}_default{}", what, kCsv);
}

std::vector<TypicalTask> typical_of(const std::vector<Pod>& pods) {
  using Kind = std::tuple<std::int64_t, int, int, std::string>;
  std::map<Kind, int> counts;
  for (const Pod& pod : pods) ++counts[{pod.cpu_milli, pod.milli, pod.gpus, pod.spec}];
  std::vector<std::pair<int, Kind>> kinds;
  for (const auto& [kind, n] : counts) kinds.emplace_back(n, kind);
  std::sort(kinds.rbegin(), kinds.rend());
  const auto all = static_cast<double>(pods.size());
  std::vector<TypicalTask> typical;
  double covered = 0;
  for (const auto& [n, kind] : kinds) {
    if (covered >= 95.0 * all / 100.0) break;
    const auto& [cpu, milli, gpus, spec] = kind;
    typical.push_back({cpu, gpus, milli, split(spec, '|'), n / all});
    covered += n;
  }
  for (TypicalTask& task : typical) task.share /= covered / all;
  return typical;
}

Result<std::vector<Pod>> read_pods(const fs::path& path) {
  Result<Csv> csv = read_csv(path);
  if (!csv) return csv.error();
  std::array<int, 5> at{};
  constexpr std::array<const char*, 5> kNeeded = {"name", "cpu_milli", "memory_mib", "num_gpu",
                                                  "gpu_milli"};
  for (std::size_t i = 0; i < kNeeded.size(); ++i) {
    const Result<int> column = needed(*csv, kNeeded[i]);
    if (!column) return column.error();
    at[i] = *column;
  }
  const int spec = csv->column("gpu_spec");
  std::stable_sort(csv->rows.begin(), csv->rows.end(), [&](const auto& a, const auto& b) {
    return a[static_cast<std::size_t>(at[0])] < b[static_cast<std::size_t>(at[0])];
  });
  std::vector<Pod> pods;
  for (std::size_t r = 0; r < csv->rows.size(); ++r) {
    std::array<std::int64_t, 5> value{};
    for (std::size_t i = 1; i < at.size(); ++i) {
      const Result<std::int64_t> field = to_number(*csv, r, at[i]);
      if (!field) return field.error();
      value[i] = *field;
    }
    if (value[3] < 0 || value[3] > kMaxGpusPerPod || value[4] < 0 || value[4] > kWholeGpu)
      return invalid(
          fmt::format("{}: row {}: num_gpu {} gpu_milli {}", csv->name, r + 1, value[3], value[4]));
    Pod pod{value[1], value[2], static_cast<int>(value[3]), static_cast<int>(value[4]), {}, {}};
    if (pod.gpus == 0) pod.milli = 0;
    if (pod.milli == 0) pod.gpus = 0;
    if (spec >= 0) pod.spec = csv->rows[r][static_cast<std::size_t>(spec)];
    pod.models = split(pod.spec, '|');
    pods.push_back(std::move(pod));
  }
  return pods;
}

Status read_curves(const fs::path& path, std::map<Published::Key, Curve>& out) {
  if (!fs::exists(path)) return ok_status();
  const Result<Csv> csv = read_csv(path);
  if (!csv) return csv.error();
  const std::map<std::string, std::string> ours = {{"05-BestFit", "bestfit"}, {"06-FGD", "fgd"}};
  const int workload = csv->column("workload");
  const int policy = csv->column("sc_policy");
  const int seed = csv->column("seed");
  if (workload < 0 || policy < 0 || seed < 0)
    return invalid(fmt::format("{}: needs columns workload, sc_policy, seed", csv->name));
  for (const auto& row : csv->rows) {
    const auto known = ours.find(row[static_cast<std::size_t>(policy)]);
    std::string name = row[static_cast<std::size_t>(workload)];
    if (known == ours.end() || name.rfind(kPodsPrefix, 0) != 0) continue;
    name.erase(0, std::string(kPodsPrefix).size());
    Curve& curve =
        out[{name, known->second, std::atoi(row[static_cast<std::size_t>(seed)].c_str())}];
    for (int bin = 0; bin < kBins; ++bin) {
      const int at = csv->column(std::to_string(bin));
      const bool there = at >= 0 && !row[static_cast<std::size_t>(at)].empty();
      curve[static_cast<std::size_t>(bin)] =
          there ? std::strtod(row[static_cast<std::size_t>(at)].c_str(), nullptr) : std::nan("");
    }
  }
  return ok_status();
}

}  // namespace

Result<std::vector<TraceNode>> read_nodes(const fs::path& folder) {
  const Result<Csv> csv = read_csv(folder / "openb_node_list_gpu_node.csv");
  if (!csv) return csv.error();
  std::vector<TraceNode> nodes;
  const Result<int> name = needed(*csv, "sn");
  const Result<int> model = needed(*csv, "model");
  const Result<int> cpu = needed(*csv, "cpu_milli");
  const Result<int> memory = needed(*csv, "memory_mib");
  const Result<int> gpus = needed(*csv, "gpu");
  for (const Result<int>* column : {&name, &model, &cpu, &memory, &gpus})
    if (!*column) return column->error();
  for (std::size_t r = 0; r < csv->rows.size(); ++r) {
    TraceNode node;
    node.name = csv->rows[r][static_cast<std::size_t>(*name)];
    node.model = csv->rows[r][static_cast<std::size_t>(*model)];
    const auto cpu_milli = to_number(*csv, r, *cpu);
    const auto memory_mib = to_number(*csv, r, *memory);
    const auto count = to_number(*csv, r, *gpus);
    for (const auto* value : {&cpu_milli, &memory_mib, &count})
      if (!*value) return value->error();
    node.cpu_milli = *cpu_milli;
    node.memory_mib = *memory_mib;
    node.gpus = static_cast<int>(*count);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<std::string>> list_workloads(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "pods", error)) {
    std::string name = entry.path().filename().string();
    const std::string prefix = kPodsPrefix;
    const std::string suffix = kCsv;
    if (name.rfind(prefix, 0) != 0 || name.size() <= prefix.size() + suffix.size() ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    names.push_back(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
  }
  if (error || names.empty())
    return not_found(fmt::format("{}: no pods/{}*{} there", folder.string(), kPodsPrefix, kCsv));
  std::sort(names.begin(), names.end());
  return names;
}

Result<Workload> read_workload(const fs::path& folder, const std::string& name) {
  Workload workload;
  workload.name = name;
  Result<std::vector<Pod>> pods =
      read_pods(folder / "pods" / fmt::format("{}{}{}", kPodsPrefix, name, kCsv));
  if (!pods) return pods.error();
  const Result<std::vector<TraceNode>> nodes = read_nodes(folder);
  if (!nodes) return nodes.error();
  auto arrivals = read_orders(order_file(folder, "arrival", name), pods->size());
  if (!arrivals) return arrivals.error();
  auto order = read_orders(order_file(folder, "nodeorder", name), nodes->size());
  if (!order) return order.error();
  for (const auto& [seed, arriving] : *arrivals)
    if (!order->contains(seed) || order->at(seed).size() != nodes->size())
      return invalid(fmt::format("{}: workload {}: no full order of nodes for seed {}",
                                 folder.string(), name, seed));
  workload.typical = typical_of(*pods);
  workload.pods = std::move(*pods);
  workload.arrivals = std::move(*arrivals);
  workload.node_order = std::move(*order);
  return workload;
}

Result<Published> read_published(const fs::path& folder) {
  Published published;
  const fs::path from = folder / "expected";
  if (Status s = read_curves(from / "analysis_allo_discrete.csv.gz", published.allocation); !s)
    return s.error();
  if (Status s = read_curves(from / "analysis_frag_discrete.csv.gz", published.fragmentation); !s)
    return s.error();
  return published;
}

}  // namespace gs::openb
