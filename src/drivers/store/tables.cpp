#include "drivers/store/tables.hpp"

#include <array>
#include <utility>

#include "wire/json_reader.hpp"
#include "wire/node_json.hpp"
#include "wire/tenant_json.hpp"

namespace gs::store {
namespace {

constexpr Column kJob[] = {{"seq", Kind::Integer},
                           {"tenant", Kind::Text},
                           {"name", Kind::Text},
                           {"gpu_count", Kind::Small},
                           {"spec", Kind::Text},
                           {"labels", Kind::Text},
                           {"array_id", Kind::Text},
                           {"submitted", Kind::Integer},
                           {"state", Kind::State},
                           {"priority", Kind::Small},
                           {"held", Kind::Bool},
                           {"ending", Kind::Text},
                           {"scheduled", Kind::Integer},
                           {"started", Kind::Integer},
                           {"completed", Kind::Integer},
                           {"attempt", Kind::Small},
                           {"preempted_count", Kind::Small},
                           {"exit_code", Kind::Small},
                           {"signal", Kind::Small},
                           {"message", Kind::Text},
                           {"placement", Kind::Text},
                           {"gpu_ms", Kind::Integer}};
constexpr Column kChange[] = {{"seq", Kind::Integer},     {"state", Kind::State},
                              {"priority", Kind::Small},  {"held", Kind::Bool},
                              {"ending", Kind::Text},     {"scheduled", Kind::Integer},
                              {"started", Kind::Integer}, {"completed", Kind::Integer},
                              {"attempt", Kind::Small},   {"preempted_count", Kind::Small},
                              {"exit_code", Kind::Small}, {"signal", Kind::Small},
                              {"message", Kind::Text},    {"placement", Kind::Text},
                              {"gpu_ms", Kind::Integer}};
constexpr Column kTenant[] = {{"seq", Kind::Integer},
                              {"name", Kind::Text},
                              {"spec", Kind::Text},
                              {"active", Kind::Bool},
                              {"created", Kind::Integer},
                              {"updated", Kind::Integer},
                              {"max_gp_us", Kind::Integer},
                              {"max_gpu_memory_mb", Kind::Integer},
                              {"max_cpu_cores", Kind::Integer},
                              {"max_memory_mb", Kind::Integer},
                              {"max_concurrent_jobs", Kind::Integer},
                              {"current_gpu_milli", Kind::Integer},
                              {"current_gpu_memory_mb", Kind::Integer},
                              {"current_cpu_milli", Kind::Integer},
                              {"current_memory_mb", Kind::Integer},
                              {"current_jobs", Kind::Integer},
                              {"total_jobs", Kind::Integer},
                              {"successful_jobs", Kind::Integer},
                              {"failed_jobs", Kind::Integer},
                              {"gpu_ms", Kind::Integer},
                              {"total_cost", Kind::Real}};
constexpr Column kNode[] = {{"name", Kind::Text},          {"address", Kind::Text},
                            {"version", Kind::Text},       {"container_runtime", Kind::Text},
                            {"gpu_count", Kind::Small},    {"simulated", Kind::Bool},
                            {"cordoned", Kind::Bool},      {"draining", Kind::Bool},
                            {"registered", Kind::Integer}, {"node", Kind::Text},
                            {"instance", Kind::Text}};
constexpr Column kEvent[] = {{"id", Kind::Integer},   {"time", Kind::Integer}, {"type", Kind::Text},
                             {"job", Kind::Integer},  {"tenant", Kind::Text},  {"node", Kind::Text},
                             {"message", Kind::Text}, {"data", Kind::Text}};
constexpr Column kUsage[] = {{"hour", Kind::Integer},
                             {"tenant", Kind::Text},
                             {"gpu_ms", Kind::Integer},
                             {"jobs_ended", Kind::Integer},
                             {"cost", Kind::Real}};
constexpr Column kKey[] = {{"tenant", Kind::Text},
                           {"key", Kind::Text},
                           {"body_hash", Kind::Integer},
                           {"answer", Kind::Text},
                           {"time", Kind::Integer}};
constexpr Column kLabel[] = {{"key", Kind::Text}, {"value", Kind::Text}, {"seq", Kind::Integer}};

constexpr std::pair<const char*, Ending> kEndings[] = {{"", Ending::None},
                                                       {"cancel", Ending::Cancel},
                                                       {"fail", Ending::Fail},
                                                       {"requeue", Ending::Requeue}};

Error damaged(const std::string& what, const std::string& why) {
  return {ErrorCode::Internal, "the database holds a " + what + " that can't be read: " + why};
}

// Takes the columns of a row one after the other.
class Cells {
 public:
  explicit Cells(const Row& row) : row_(row) {}
  bool is_null() const { return row_.is_null(next_); }
  std::int64_t integer() { return row_.integer(next_++); }
  int small() { return static_cast<int>(integer()); }
  bool flag() { return integer() != 0; }
  double real() { return row_.real(next_++); }
  std::string_view view() { return row_.text(next_++); }
  std::string text() { return std::string(view()); }
  Instant instant() { return Instant{integer()}; }

 private:
  const Row& row_;
  int next_ = 0;
};

}  // namespace

std::span<const Column> job_columns() { return kJob; }
std::span<const Column> change_columns() { return kChange; }
std::span<const Column> tenant_columns() { return kTenant; }
std::span<const Column> node_columns() { return kNode; }
std::span<const Column> event_columns() { return kEvent; }
std::span<const Column> usage_columns() { return kUsage; }
std::span<const Column> key_columns() { return kKey; }
std::span<const Column> label_columns() { return kLabel; }

std::string names_of(std::span<const Column> columns, const char* prefix) {
  std::string names;
  for (const Column& column : columns)
    names.append(names.empty() ? "" : ", ").append(prefix).append(column.name);
  return names;
}

const char* ending_word(Ending ending) {
  for (const auto& [word, known] : kEndings)
    if (known == ending) return word;
  return "";
}

std::string labels_text(const Labels& labels) {
  if (labels.empty()) return {};
  Json json = Json::object();
  for (const auto& [key, value] : labels) json[key] = value;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Labels labels_of(std::string_view text) {
  Labels labels;
  if (text.empty()) return labels;
  const Result<Json> json = parse_json(text);
  if (!json || !json->is_object()) return labels;
  for (const auto& [key, value] : json->items())
    if (value.is_string()) labels.emplace_back(key, value.get<std::string>());
  return labels;
}

std::string tenant_text(const TenantSpec& spec) {
  return tenant_json(spec).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string node_text(const Node& node) {
  return node_json(node).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status read_job(const Row& row, JobRow& out) {
  Cells cells(row);
  out.seq = cells.integer();
  out.tenant = cells.text();
  out.name = cells.text();
  out.gpu_count = cells.small();
  out.spec = cells.text();
  out.labels = labels_of(cells.view());
  out.array_id = cells.text();
  out.submitted = cells.instant();
  const std::string state = cells.text();
  const std::optional<RunState> known = run_state_of(state);
  if (!known) return damaged("job", job_id(out.seq) + " has the state '" + state + "'");
  out.state = *known;
  out.priority = cells.small();
  out.held = cells.flag();
  const std::string_view ending = cells.view();
  for (const auto& [word, value] : kEndings)
    if (ending == word) out.ending = value;
  out.scheduled = cells.instant();
  out.started = cells.instant();
  out.completed = cells.instant();
  out.attempt = cells.small();
  out.preempted_count = cells.small();
  const bool has_exit_code = !cells.is_null();
  const int exit_code = cells.small();
  if (has_exit_code) out.exit_code = exit_code;
  out.signal = cells.small();
  out.message = cells.text();
  out.placement = cells.text();
  out.gpu_ms = cells.integer();
  return ok_status();
}

Status read_tenant_row(const Row& row, TenantRow& out) {
  Cells cells(row);
  out.seq = cells.integer();
  (void)cells.view();  // the name; the spec has it too
  const Result<Json> json = parse_json(cells.view());
  if (!json) return damaged("tenant", tenant_id(out.seq) + ": " + json.error().message);
  Result<TenantSpec> spec = read_tenant(*json);
  if (!spec) return damaged("tenant", tenant_id(out.seq) + ": " + spec.error().message);
  out.spec = std::move(*spec);
  out.active = cells.flag();
  out.created = cells.instant();
  out.updated = cells.instant();
  for (int limits = 0; limits < 5; ++limits) (void)cells.integer();  // in the spec too
  out.current_gpu_milli = cells.integer();
  out.current_gpu_memory_mb = cells.integer();
  out.current_cpu_milli = cells.integer();
  out.current_memory_mb = cells.integer();
  out.current_jobs = cells.integer();
  out.total_jobs = cells.integer();
  out.successful_jobs = cells.integer();
  out.failed_jobs = cells.integer();
  out.gpu_ms = cells.integer();
  out.total_cost = cells.real();
  return ok_status();
}

Status read_node_row(const Row& row, NodeRow& out) {
  Cells cells(row);
  const std::string name = cells.text();
  out.address = cells.text();
  out.version = cells.text();
  out.container_runtime = cells.text();
  (void)cells.integer();  // the number of GPUs; they are in the node
  out.simulated = cells.flag();
  out.cordoned = cells.flag();
  out.draining = cells.flag();
  out.registered = cells.instant();
  const Result<Json> json = parse_json(cells.view());
  if (!json) return damaged("node", name + ": " + json.error().message);
  Result<Node> node = read_node(*json);
  if (!node) return damaged("node", name + ": " + node.error().message);
  out.node = std::move(*node);
  out.instance = cells.text();
  return ok_status();
}

Status read_event(const Row& row, EventRow& out) {
  Cells cells(row);
  out.id = static_cast<std::uint64_t>(cells.integer());
  out.time = cells.instant();
  out.type = cells.text();
  out.job = cells.integer();
  out.tenant = cells.text();
  out.node = cells.text();
  out.message = cells.text();
  out.data = cells.text();
  return ok_status();
}

Status read_usage(const Row& row, UsageRow& out) {
  Cells cells(row);
  out.hour = cells.instant();
  out.tenant = cells.text();
  out.gpu_ms = cells.integer();
  out.jobs_ended = cells.integer();
  out.cost = cells.real();
  return ok_status();
}

Status read_key(const Row& row, KeyRow& out) {
  Cells cells(row);
  out.tenant = cells.text();
  out.key = cells.text();
  out.body_hash = static_cast<std::uint64_t>(cells.integer());
  out.answer = cells.text();
  out.time = cells.instant();
  return ok_status();
}

}  // namespace gs::store
