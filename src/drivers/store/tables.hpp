// The columns of each table, and records <-> rows. Both databases write by the same lists: a sink
// takes the values of one row in the order of the columns.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "drivers/store/session.hpp"
#include "service/records.hpp"
#include "service/store.hpp"

namespace gs::store {

enum class Kind { Integer, Small, Bool, Real, Text, State };
struct Column {
  const char* name;
  Kind kind;
};

std::span<const Column> job_columns();
std::span<const Column> change_columns();  // seq, then what can change of a job
std::span<const Column> tenant_columns();
std::span<const Column> node_columns();
std::span<const Column> event_columns();
std::span<const Column> usage_columns();
std::span<const Column> key_columns();
std::span<const Column> label_columns();
std::string names_of(std::span<const Column> columns, const char* prefix = "");  // "a, b, c"

const char* ending_word(Ending ending);
std::string labels_text(const Labels& labels);  // a JSON object; empty where there are none
Labels labels_of(std::string_view text);

Status read_job(const Row& row, JobRow& out);
Status read_tenant_row(const Row& row, TenantRow& out);
Status read_node_row(const Row& row, NodeRow& out);
Status read_event(const Row& row, EventRow& out);
Status read_usage(const Row& row, UsageRow& out);
Status read_key(const Row& row, KeyRow& out);
std::string tenant_text(const TenantSpec& spec);
std::string node_text(const Node& node);

template <typename Sink>
void write_change_of(Sink& sink, const JobRow& job) {
  sink.text(to_string(job.state));
  sink.integer(job.priority);
  sink.integer(job.held ? 1 : 0);
  sink.text(ending_word(job.ending));
  sink.integer(job.scheduled.ms);
  sink.integer(job.started.ms);
  sink.integer(job.completed.ms);
  sink.integer(job.attempt);
  sink.integer(job.preempted_count);
  if (job.exit_code)
    sink.integer(*job.exit_code);
  else
    sink.null();
  sink.integer(job.signal);
  sink.text(job.message);
  sink.text(job.placement);
  sink.integer(job.gpu_ms);
}

template <typename Sink>
void write_job(Sink& sink, const JobRow& job) {
  sink.integer(job.seq);
  sink.text(job.tenant);
  sink.text(job.name);
  sink.integer(job.gpu_count);
  sink.text(job.spec);
  sink.own_text(labels_text(job.labels));
  sink.text(job.array_id);
  sink.integer(job.submitted.ms);
  write_change_of(sink, job);
}

template <typename Sink>
void write_change(Sink& sink, const JobRow& job) {
  sink.integer(job.seq);
  write_change_of(sink, job);
}

template <typename Sink>
void write_tenant(Sink& sink, const TenantRow& tenant) {
  sink.integer(tenant.seq);
  sink.text(tenant.spec.name);
  sink.own_text(tenant_text(tenant.spec));
  sink.integer(tenant.active ? 1 : 0);
  sink.integer(tenant.created.ms);
  sink.integer(tenant.updated.ms);
  sink.integer(tenant.spec.max_gpus);
  sink.integer(tenant.spec.max_gpu_memory_mb);
  sink.integer(tenant.spec.max_cpu_cores);
  sink.integer(tenant.spec.max_memory_mb);
  sink.integer(tenant.spec.max_concurrent_jobs);
  sink.integer(tenant.current_gpu_milli);
  sink.integer(tenant.current_gpu_memory_mb);
  sink.integer(tenant.current_cpu_milli);
  sink.integer(tenant.current_memory_mb);
  sink.integer(tenant.current_jobs);
  sink.integer(tenant.total_jobs);
  sink.integer(tenant.successful_jobs);
  sink.integer(tenant.failed_jobs);
  sink.integer(tenant.gpu_ms);
  sink.real(tenant.total_cost);
}

template <typename Sink>
void write_node(Sink& sink, const NodeRow& node) {
  sink.text(node.node.name);
  sink.text(node.address);
  sink.text(node.version);
  sink.text(node.container_runtime);
  sink.integer(static_cast<std::int64_t>(node.node.gpus.size()));
  sink.integer(node.simulated ? 1 : 0);
  sink.integer(node.cordoned ? 1 : 0);
  sink.integer(node.draining ? 1 : 0);
  sink.integer(node.registered.ms);
  sink.own_text(node_text(node.node));
  sink.text(node.instance);
}

template <typename Sink>
void write_event(Sink& sink, const EventRow& event) {
  sink.integer(static_cast<std::int64_t>(event.id));
  sink.integer(event.time.ms);
  sink.text(event.type);
  sink.integer(event.job);
  sink.text(event.tenant);
  sink.text(event.node);
  sink.text(event.message);
  sink.text(event.data);
}

template <typename Sink>
void write_usage(Sink& sink, const UsageRow& usage) {
  sink.integer(usage.hour.ms);
  sink.text(usage.tenant);
  sink.integer(usage.gpu_ms);
  sink.integer(usage.jobs_ended);
  sink.real(usage.cost);
}

template <typename Sink>
void write_key(Sink& sink, const KeyRow& key) {
  sink.text(key.tenant);
  sink.text(key.key);
  sink.integer(static_cast<std::int64_t>(key.body_hash));
  sink.text(key.answer);
  sink.integer(key.time.ms);
}

}  // namespace gs::store
