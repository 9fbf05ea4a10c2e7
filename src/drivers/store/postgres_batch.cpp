#include <algorithm>
#include <map>
#include <utility>

#include "drivers/store/postgres_rows.hpp"
#include "drivers/store/postgres_store.hpp"

namespace gs::store {
namespace {

constexpr Column kNodeName[] = {{"name", Kind::Text}};
constexpr Oid kInt8 = 20;

// One statement can't change a row twice.
template <typename Record, typename Key>
std::vector<const Record*> last_of_each(const std::vector<Record>& records, Key&& key) {
  std::map<decltype(key(records[0])), const Record*> last;
  for (const Record& record : records) last[key(record)] = &record;
  std::vector<const Record*> list;
  for (const auto& [name, record] : last) list.push_back(record);
  return list;
}

std::vector<UsageRow> sums_of(const std::vector<UsageRow>& rows) {
  std::map<std::pair<std::int64_t, std::string>, UsageRow> sums;
  for (const UsageRow& row : rows) {
    UsageRow& sum =
        sums.try_emplace({row.hour.ms, row.tenant}, UsageRow{row.tenant, row.hour}).first->second;
    sum.gpu_ms += row.gpu_ms;
    sum.jobs_ended += row.jobs_ended;
    sum.cost += row.cost;
  }
  std::vector<UsageRow> list;
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  return list;
}

template <typename Record>
const Record& value_of(const Record& record) {
  return record;
}
template <typename Record>
const Record& value_of(const Record* record) {
  return *record;
}

template <typename Records, typename Write>
void add(std::vector<Prepared>& statements, const char* name, std::span<const Column> columns,
         const Records& records, Write&& write) {
  if (records.empty()) return;
  ColumnArrays arrays(columns);
  for (const auto& record : records) write(arrays, value_of(record));
  statements.push_back({name, arrays.finish()});
}

void add_labels(std::vector<Prepared>& statements, const std::vector<JobRow>& jobs) {
  ColumnArrays arrays(label_columns());
  for (const JobRow& job : jobs)
    for (const auto& [key, value] : job.labels) {
      arrays.text(key);
      arrays.text(value);
      arrays.integer(job.seq);
    }
  if (arrays.rows() > 0) statements.push_back({"add_labels", arrays.finish()});
}

Prepared advance(const Batch& batch, std::int64_t term) {
  std::int64_t seq = 0, event = 0;
  for (const JobRow& job : batch.added) seq = std::max(seq, job.seq);
  for (const TenantRow& tenant : batch.tenants) seq = std::max(seq, tenant.seq);
  for (const EventRow& row : batch.events)
    event = std::max(event, static_cast<std::int64_t>(row.id));
  return {"advance",
          {binary_integer(term), binary_integer(static_cast<std::int64_t>(batch.turn)),
           binary_integer(seq), binary_integer(event)}};
}

}  // namespace

std::vector<Prepared> statements_for(const Batch& batch, std::int64_t term) {
  std::vector<Prepared> all{advance(batch, term)};  // first: it is the fence
  using Sink = ColumnArrays;
  add(all, "add_jobs", job_columns(), batch.added, write_job<Sink>);
  add_labels(all, batch.added);
  add(all, "change_jobs", change_columns(),
      last_of_each(batch.changed, [](const JobRow& job) { return job.seq; }), write_change<Sink>);
  add(all, "put_tenants", tenant_columns(),
      last_of_each(batch.tenants, [](const TenantRow& tenant) { return tenant.seq; }),
      write_tenant<Sink>);
  add(all, "drop_nodes", kNodeName, batch.removed_nodes,
      [](Sink& sink, const std::string& name) { sink.text(name); });
  add(all, "put_nodes", node_columns(),
      last_of_each(batch.nodes, [](const NodeRow& row) { return row.node.name; }),
      write_node<Sink>);
  add(all, "add_events", event_columns(), batch.events, write_event<Sink>);
  add(all, "add_usage", usage_columns(), sums_of(batch.usage), write_usage<Sink>);
  add(all, "put_keys", key_columns(),
      last_of_each(batch.keys,
                   [](const KeyRow& row) { return std::make_pair(row.tenant, row.key); }),
      write_key<Sink>);
  return all;
}

Status prepare_batch_statements(PostgresSession& session) {
  struct Statement {
    const char* name;
    std::string sql;
    std::vector<Oid> types;
  };
  const Statement all[] = {
      {"begin", "BEGIN", {}},
      {"commit", "COMMIT", {}},
      {"advance", "SELECT advance_turn($1, $2, $3, $4)", {kInt8, kInt8, kInt8, kInt8}},
      {"add_jobs", insert_arrays("jobs", job_columns()), array_types(job_columns())},
      {"add_labels", insert_arrays("job_labels", label_columns()), array_types(label_columns())},
      {"change_jobs", update_arrays("jobs", change_columns()), array_types(change_columns())},
      {"put_tenants", put_arrays("tenants", tenant_columns(), "seq"),
       array_types(tenant_columns())},
      {"drop_nodes", "DELETE FROM nodes WHERE name = ANY($1)", array_types(kNodeName)},
      {"put_nodes", put_arrays("nodes", node_columns(), "name"), array_types(node_columns())},
      {"add_events", insert_arrays("events", event_columns()), array_types(event_columns())},
      {"add_usage",
       insert_arrays("usage_hours", usage_columns()) +
           " ON CONFLICT (hour, tenant) DO UPDATE SET gpu_ms = usage_hours.gpu_ms + "
           "excluded.gpu_ms, jobs_ended = usage_hours.jobs_ended + excluded.jobs_ended, "
           "cost = usage_hours.cost + excluded.cost",
       array_types(usage_columns())},
      {"put_keys", put_arrays("submit_keys", key_columns(), "tenant, key"),
       array_types(key_columns())}};
  for (const Statement& statement : all)
    if (Status made = session.prepare(statement.name, statement.sql, statement.types); !made)
      return made;
  return ok_status();
}

}  // namespace gs::store
