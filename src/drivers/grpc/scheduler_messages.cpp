#include "drivers/grpc/scheduler_messages.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "wire/job_json.hpp"

namespace gs {
namespace {

constexpr double kHourMs = 3'600'000.0;

// Whole minutes, rounded up: a limit is never shorter than what was asked for.
int minutes_of(const google::protobuf::Duration& duration) {
  return static_cast<int>(std::clamp<std::int64_t>((duration.seconds() + 59) / 60, -1, 1 << 30));
}

void add_dependencies(const google::protobuf::RepeatedPtrField<std::string>& ids, bool any,
                      JobSpec& spec) {
  for (const std::string& id : ids) spec.depends_on.push_back({id, any});
}

void put_duration(Duration duration, google::protobuf::Duration& out) {
  out.set_seconds(duration.ms / 1000);
  out.set_nanos(static_cast<int>(duration.ms % 1000) * 1'000'000);
}

}  // namespace

Result<JobSpec> spec_of(const scheduler::SubmitJobRequest& in, int default_priority) {
  JobSpec spec;
  spec.tenant_id = in.tenant_id();
  spec.name = in.name();
  spec.priority = in.priority() == 0 ? default_priority : in.priority();
  spec.gpu_count = in.gpu_count();
  spec.gpu_memory_mb = in.gpu_memory_mb();
  spec.gpu_milli = in.gpu_milli();
  spec.gpu_model = in.gpu_model();
  spec.mig_profile = in.mig_profile();
  spec.cpu_milli = std::int64_t{in.cpu_cores()} * 1000;
  spec.memory_mb = in.memory_mb();
  spec.gang_scheduling = in.gang_scheduling();
  spec.nodes = in.nodes();
  spec.gpus_per_node = in.gpus_per_node();
  if (spec.gpu_count == 0 && spec.nodes > 0 && spec.nodes < 10'000 && spec.gpus_per_node > 0 &&
      spec.gpus_per_node < 10'000)
    spec.gpu_count = spec.nodes * spec.gpus_per_node;
  spec.command.assign(in.command().begin(), in.command().end());
  spec.args.assign(in.args().begin(), in.args().end());
  spec.script = in.script();
  spec.image = in.image();
  for (const auto& [name, value] : in.environment()) set_label(spec.environment, name, value);
  for (const auto& [name, value] : in.labels()) set_label(spec.labels, name, value);
  spec.working_dir = in.working_dir();
  spec.user = in.user();
  spec.checkpoint = in.checkpoint_enabled() || !in.checkpoint_path().empty();
  spec.checkpoint_path = in.checkpoint_path();
  spec.max_runtime_minutes = minutes_of(in.max_runtime());
  spec.expected_runtime_minutes = minutes_of(in.expected_runtime());
  spec.held = in.hold();
  add_dependencies(in.depends_on(), false, spec);
  add_dependencies(in.depends_on_any(), true, spec);
  if (Status s = validate(spec); !s) return s.error();
  return spec;
}

std::uint64_t hash_of(const scheduler::SubmitJobRequest& request) {
  Result<JobSpec> spec = spec_of(request, 0);
  return spec ? Hash{}.add(std::string_view(encode_job(*spec))).value() : 0;
}

Result<JobQuery> query_of(const scheduler::ListJobsRequest& request) {
  JobQuery query;
  query.tenant = request.tenant_id();
  if (!request.state().empty()) {
    const auto state = run_state_of(request.state());
    if (!state) return invalid("state '" + request.state() + "' is not a state of jobs");
    query.states.push_back(*state);
  }
  if (request.limit() < 0 || request.limit() > 1000) return invalid("limit must be 0..1000");
  if (request.limit() > 0) query.limit = request.limit();
  if (request.offset() < 0) return invalid("offset must not be negative");
  query.offset = request.offset();
  query.cursor = request.cursor();
  return query;
}

void put_time(Instant time, google::protobuf::Timestamp& out) {
  out.set_seconds(time.ms / 1000);
  out.set_nanos(static_cast<int>(time.ms % 1000) * 1'000'000);
}

void put_status(const JobRow& row, scheduler::GetJobStatusResponse& out) {
  out.set_job_id(job_id(row.seq));
  out.set_state(to_string(row.state));
  out.set_message(row.message);
  const Result<std::vector<Process>> processes = decode_processes(row.placement);
  if (processes)
    for (const Process& process : *processes) {
      if (out.node_name().empty()) out.set_node_name(process.node);
      for (const std::string& id : process.gpu_ids) out.add_allocated_gpus(id);
    }
  put_time(row.submitted, *out.mutable_submitted_at());
  if (row.started.ms != 0) put_time(row.started, *out.mutable_started_at());
  if (row.completed.ms != 0) put_time(row.completed, *out.mutable_completed_at());
  (*out.mutable_metrics())["gpu_hours"] = static_cast<double>(row.gpu_ms) / kHourMs;
  (*out.mutable_metrics())["attempt"] = row.attempt;
  (*out.mutable_metrics())["preempted_count"] = row.preempted_count;
  if (row.exit_code) (*out.mutable_metrics())["exit_code"] = *row.exit_code;
}

void put_waiting(const Explanation& answer, int position, Instant now,
                 scheduler::GetJobStatusResponse& out) {
  out.set_queue_position(position);
  if (answer.why && out.message().empty()) out.set_message(answer.why->sentence);
  if (answer.expected_start && *answer.expected_start > now)
    put_duration(*answer.expected_start - now, *out.mutable_estimated_wait());
}

void put_info(const JobRow& row, scheduler::JobInfo& out) {
  out.set_job_id(job_id(row.seq));
  out.set_name(row.name);
  out.set_state(to_string(row.state));
  out.set_gpu_count(row.gpu_count);
  out.set_priority(row.priority);
  out.set_tenant_id(row.tenant);
  put_time(row.submitted, *out.mutable_submitted_at());
  if (row.started.ms != 0) put_time(row.started, *out.mutable_started_at());
}

// Zero: not given, stays as it is.
void put_quota(const scheduler::UpdateTenantQuotaRequest& in, TenantSpec& spec) {
  if (in.max_gpus() != 0) spec.max_gpus = in.max_gpus();
  if (in.max_gpu_memory_mb() != 0) spec.max_gpu_memory_mb = in.max_gpu_memory_mb();
  if (in.max_cpu_cores() != 0) spec.max_cpu_cores = in.max_cpu_cores();
  if (in.max_memory_mb() != 0) spec.max_memory_mb = in.max_memory_mb();
  if (in.max_concurrent_jobs() != 0) spec.max_concurrent_jobs = in.max_concurrent_jobs();
}

void put_cluster(const ClusterView& view, scheduler::GetClusterStatusResponse& out) {
  out.set_total_gpus(view.total_gpus);
  out.set_available_gpus(view.available_gpus);
  out.set_total_nodes(view.total_nodes);
  out.set_online_nodes(view.online_nodes);
  out.set_total_jobs(static_cast<int>(view.total_jobs));
  out.set_pending_jobs(static_cast<int>(view.waiting()));
  out.set_running_jobs(static_cast<int>(view.count(RunState::Running)));
  out.set_avg_gpu_utilization(view.mean_gpu_utilization);
  for (const NodeView& node : *view.nodes) {
    auto* one = out.add_nodes();
    one->set_node_id(node.row.node.name);
    one->set_name(node.row.node.name);
    one->set_total_gpus(static_cast<int>(node.gpus.size()));
    one->set_available_gpus(node.available_gpus());
    one->set_online(node.online);
    one->set_cpu_utilization(node.cpu_utilization);
    one->set_memory_utilization(node.memory_utilization);
  }
}

void put_event(const Published& event, scheduler::Event& out) {
  const EventRow& row = event.row();
  out.set_id(row.id);
  put_time(row.time, *out.mutable_time());
  out.set_type(row.type);
  if (row.job != 0) out.set_job_id(job_id(row.job));
  out.set_tenant_id(row.tenant);
  out.set_node(row.node);
  out.set_message(row.message);
  out.set_json(event.json());
}

}  // namespace gs
