#include "drivers/store/reading.hpp"

#include <utility>

#include "base/check.hpp"
#include "drivers/store/events.hpp"
#include "drivers/store/job_list.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

std::string select_from(std::span<const Column> columns, const std::string& rest) {
  return "SELECT " + names_of(columns) + " FROM " + rest;
}

template <typename T>
Result<std::optional<T>> first_of(Result<std::vector<T>> found) {
  if (!found) return found.error();
  if (found->empty()) return std::optional<T>();
  return std::optional<T>(std::move(found->front()));
}

}  // namespace

Result<Loaded> load_all(Session& session) {
  Loaded loaded;
  const Status meta =
      session.query("SELECT turn, last_seq, last_event FROM meta", {}, [&](const Row& row) {
        loaded.turn = static_cast<std::uint64_t>(row.integer(0));
        loaded.last_seq = row.integer(1);
        loaded.last_event = static_cast<std::uint64_t>(row.integer(2));
      });
  if (!meta) return meta.error();
  auto tenants = select<TenantRow>(session, select_from(tenant_columns(), "tenants ORDER BY seq"),
                                   {}, read_tenant_row);
  if (!tenants) return tenants.error();
  auto nodes = select<NodeRow>(session, select_from(node_columns(), "nodes ORDER BY name"), {},
                               read_node_row);
  if (!nodes) return nodes.error();
  const std::string live =
      "jobs" + indexed_by(session.dialect(), "jobs_by_state") +
      " WHERE state IN ('pending', 'scheduled', 'running', 'preempted') ORDER BY seq";
  auto jobs = select<JobRow>(session, select_from(job_columns(), live), {}, read_job);
  if (!jobs) return jobs.error();
  loaded.tenants = std::move(*tenants);
  loaded.nodes = std::move(*nodes);
  loaded.jobs = std::move(*jobs);
  return loaded;
}

Result<std::optional<KeyRow>> find_key_in(Session& session, const std::string& tenant,
                                          const std::string& key) {
  return first_of(select<KeyRow>(
      session, select_from(key_columns(), "submit_keys WHERE tenant = $1 AND key = $2"),
      {tenant, key}, read_key));
}

Result<std::optional<JobRow>> find_job_in(Session& session, std::int64_t seq) {
  return first_of(
      select<JobRow>(session, select_from(job_columns(), "jobs WHERE seq = $1"), {seq}, read_job));
}

PooledReader::PooledReader(std::vector<std::unique_ptr<Session>> sessions)
    : sessions_(std::move(sessions)) {
  CHECK(!sessions_.empty());
  for (const auto& session : sessions_) free_.push_back(session.get());
}

PooledReader::Lent::Lent(PooledReader& pool) : pool_(pool) {
  std::unique_lock lock(pool_.mutex_);
  pool_.returned_.wait(lock, [&] { return !pool_.free_.empty(); });
  session_ = pool_.free_.back();
  pool_.free_.pop_back();
}

PooledReader::Lent::~Lent() {
  {
    const std::lock_guard lock(pool_.mutex_);
    pool_.free_.push_back(session_);
  }
  pool_.returned_.notify_one();
}

Result<std::optional<JobRow>> PooledReader::job(std::int64_t seq) {
  Lent session(*this);
  return find_job_in(*session, seq);
}

Result<JobPage> PooledReader::jobs(const JobQuery& query) {
  Lent session(*this);
  return list_jobs(*session, query);
}

Result<std::optional<TenantRow>> PooledReader::tenant(std::int64_t seq) {
  Lent session(*this);
  return first_of(select<TenantRow>(
      *session, select_from(tenant_columns(), "tenants WHERE seq = $1"), {seq}, read_tenant_row));
}

Result<std::vector<TenantRow>> PooledReader::tenants() {
  Lent session(*this);
  return select<TenantRow>(*session,
                           select_from(tenant_columns(), "tenants WHERE active ORDER BY seq"), {},
                           read_tenant_row);
}

Result<std::vector<NodeRow>> PooledReader::nodes() {
  Lent session(*this);
  return select<NodeRow>(*session, select_from(node_columns(), "nodes ORDER BY name"), {},
                         read_node_row);
}

Result<std::vector<EventRow>> PooledReader::events(const EventQuery& query) {
  Lent session(*this);
  return list_events(*session, query);
}

Result<std::vector<UsageRow>> PooledReader::usage(const UsageQuery& query) {
  Lent session(*this);
  std::string where = "usage_hours WHERE hour >= $1 AND hour < $2";
  std::vector<Value> values{query.from.ms, query.to.ms};
  if (!query.tenant.empty()) {
    where += " AND tenant = $3";
    values.emplace_back(query.tenant);
  }
  return select<UsageRow>(*session, select_from(usage_columns(), where + " ORDER BY hour, tenant"),
                          values, read_usage);
}

Status PooledReader::ping() {
  Lent session(*this);
  return (*session).run("SELECT 1 FROM meta");
}

}  // namespace gs::store
