#include "drivers/grpc/scheduler_service.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <grpcpp/grpcpp.h>
#include <scheduler.grpc.pb.h>

#include "drivers/grpc/scheduler_messages.hpp"
#include "net/error_codes.hpp"

namespace gs {
namespace {

using grpc::ServerContext;

grpc::Status status_of(const Error& error) {
  return {static_cast<grpc::StatusCode>(outside_code(error.code).grpc), error.message};
}

std::string metadata_of(const ServerContext& context, const char* name) {
  const auto& metadata = context.client_metadata();
  const auto at = metadata.find(name);
  return at == metadata.end() ? std::string{} : std::string(at->second.data(), at->second.size());
}

}  // namespace

struct SchedulerRpc::Impl final : scheduler::SchedulerService::Service {
  explicit Impl(SchedulerRpcParts the_parts) : parts(std::move(the_parts)) {}

  SchedulerRpcParts parts;
  std::atomic<bool> stopping{false};

  Result<Caller> caller_of(const ServerContext& context) {
    return parts.identify(metadata_of(context, "authorization"), metadata_of(context, "x-api-key"));
  }

  // Runs f(Desk&) in a turn and waits until it is durable.
  template <typename F>
  std::invoke_result_t<F&, Desk&> ask(F f) {
    using Answer = std::invoke_result_t<F&, Desk&>;
    struct Slot {
      std::mutex mutex;
      std::condition_variable wake;
      std::optional<Answer> answer;
    };
    auto slot = std::make_shared<Slot>();
    const bool posted = parts.service.ask(std::move(f), [slot](Answer answer) {
      {
        const std::lock_guard lock(slot->mutex);
        slot->answer.emplace(std::move(answer));
      }
      slot->wake.notify_all();
    });
    if (!posted) return Error{ErrorCode::QueueFull, "the server is busy; try again in a moment"};
    std::unique_lock lock(slot->mutex);
    if (!slot->wake.wait_for(lock, std::chrono::seconds(30),
                             [&] { return slot->answer.has_value(); }))
      return Error{ErrorCode::Unavailable, "no answer in time; it may still be done"};
    return std::move(*slot->answer);
  }

  // The job, if this caller may see it.
  Result<JobRow> job_of(const Caller& caller, const std::string& id, const std::string& tenant) {
    const auto seq = job_seq(id);
    const Error missing = not_found("Job not found: " + id);
    if (!seq) return missing;
    Result<std::optional<JobRow>> row = parts.reader.job(*seq);
    if (!row) return row.error();
    if (!*row || !may_see(caller, (*row)->tenant)) return missing;
    if (!tenant.empty() && (*row)->tenant != tenant) return missing;
    return **row;
  }

  grpc::Status SubmitJob(ServerContext* context, const scheduler::SubmitJobRequest* request,
                         scheduler::SubmitJobResponse* response) override;
  grpc::Status CancelJob(ServerContext* context, const scheduler::CancelJobRequest* request,
                         scheduler::CancelJobResponse* response) override;
  grpc::Status GetJobStatus(ServerContext* context, const scheduler::GetJobStatusRequest* request,
                            scheduler::GetJobStatusResponse* response) override;
  grpc::Status ListJobs(ServerContext* context, const scheduler::ListJobsRequest* request,
                        scheduler::ListJobsResponse* response) override;
  grpc::Status UpdateTenantQuota(ServerContext* context,
                                 const scheduler::UpdateTenantQuotaRequest* request,
                                 scheduler::UpdateTenantQuotaResponse* response) override;
  grpc::Status GetMetrics(ServerContext* context, const scheduler::GetMetricsRequest* request,
                          scheduler::GetMetricsResponse* response) override;
  grpc::Status GetClusterStatus(ServerContext* context,
                                const scheduler::GetClusterStatusRequest* request,
                                scheduler::GetClusterStatusResponse* response) override;
  grpc::Status WatchEvents(ServerContext* context, const scheduler::WatchEventsRequest* request,
                           grpc::ServerWriter<scheduler::Event>* stream) override;
};

grpc::Status SchedulerRpc::Impl::SubmitJob(ServerContext* context,
                                           const scheduler::SubmitJobRequest* request,
                                           scheduler::SubmitJobResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  Result<JobSpec> spec = spec_of(*request, parts.default_priority);
  if (!spec) return status_of(spec.error());
  if (Status s = may_submit_for(*caller, spec->tenant_id); !s) return status_of(s.error());
  const std::string key = request->idempotency_key();
  const std::uint64_t hash = key.empty() ? 0 : hash_of(*request);
  auto submit = [this, key, hash, spec = *spec](Desk& desk) -> Result<std::string> {
    if (!key.empty()) {
      Result<std::optional<KeyRow>> known = desk.recall(parts.store, spec.tenant_id, key);
      if (!known) return known.error();
      if (*known && (*known)->body_hash != hash)
        return Error{ErrorCode::Conflict,
                     "idempotency_key '" + key + "' was used for another request already"};
      if (*known) return (*known)->answer;
    }
    Result<std::int64_t> seq = desk.submit(spec);
    if (!seq) return seq.error();
    if (!key.empty()) desk.remember({spec.tenant_id, key, hash, job_id(*seq), desk.now()});
    return job_id(*seq);
  };
  Result<std::string> id = ask(submit);
  if (!id) return status_of(id.error());
  response->set_job_id(*id);
  response->set_status("submitted");
  response->set_message("Job submitted successfully");
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::CancelJob(ServerContext* context,
                                           const scheduler::CancelJobRequest* request,
                                           scheduler::CancelJobResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  Result<JobRow> row = job_of(*caller, request->job_id(), request->tenant_id());
  if (!row) return status_of(row.error());
  if (Status s = may_change_jobs_of(*caller, row->tenant); !s) return status_of(s.error());
  const std::int64_t seq = row->seq;
  Status done = ask([seq](Desk& desk) { return desk.cancel(seq); });
  if (!done) return status_of(done.error());
  response->set_success(true);
  response->set_message("Job cancelled successfully");
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::GetJobStatus(ServerContext* context,
                                              const scheduler::GetJobStatusRequest* request,
                                              scheduler::GetJobStatusResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  Result<JobRow> row = job_of(*caller, request->job_id(), request->tenant_id());
  if (!row) return status_of(row.error());
  put_status(*row, *response);
  if (is_final(row->state) || !parts.service.leads()) return grpc::Status::OK;
  const std::int64_t seq = row->seq;
  auto look = [seq](Desk& desk) -> Result<std::pair<Explanation, int>> {
    Result<Explanation> answer = desk.explain(seq);
    if (!answer) return answer.error();
    return std::pair(std::move(*answer), desk.queue_position(seq));
  };
  Result<std::pair<Explanation, int>> live = ask(look);
  if (!live) return grpc::Status::OK;  // it has ended in between
  put_waiting(live->first, live->second, parts.clock(), *response);
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::ListJobs(ServerContext* context,
                                          const scheduler::ListJobsRequest* request,
                                          scheduler::ListJobsResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  Result<JobQuery> query = query_of(*request);
  if (!query) return status_of(query.error());
  if (const auto only = only_tenant(*caller)) {
    if (!query->tenant.empty() && query->tenant != *only)
      return status_of(may_see(*caller, query->tenant).error());
    query->tenant = *only;
  }
  Result<JobPage> page = parts.reader.jobs(*query);
  if (!page) return status_of(page.error());
  for (const JobRow& row : page->jobs) put_info(row, *response->add_jobs());
  response->set_total(static_cast<int>(page->total));
  response->set_next_cursor(page->next_cursor);
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::UpdateTenantQuota(
    ServerContext* context, const scheduler::UpdateTenantQuotaRequest* request,
    scheduler::UpdateTenantQuotaResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  if (Status s = may_change_tenants(*caller); !s) return status_of(s.error());
  const auto seq = tenant_seq(request->tenant_id());
  if (!seq) return status_of(not_found("Tenant not found: " + request->tenant_id()));
  const scheduler::UpdateTenantQuotaRequest asked = *request;
  auto update = [seq, asked](Desk& desk) -> Result<TenantRow> {
    const TenantRow* row = desk.tenant(*seq);
    if (row == nullptr) return not_found("Tenant not found: " + asked.tenant_id());
    TenantSpec spec = row->spec;
    put_quota(asked, spec);
    if (Status s = validate(spec); !s) return s.error();
    return desk.update_tenant(*seq, spec);
  };
  Result<TenantRow> row = ask(update);
  if (!row) return status_of(row.error());
  response->set_success(true);
  response->set_message("Quota updated");
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::GetMetrics(ServerContext* context,
                                            const scheduler::GetMetricsRequest* request,
                                            scheduler::GetMetricsResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  if (Status s = may_see_cluster(*caller); !s) return status_of(s.error());
  for (const auto& [name, value] : parts.metrics(request->metric_type()))
    (*response->mutable_metrics())[name] = value;
  put_time(parts.clock(), *response->mutable_timestamp());
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::GetClusterStatus(ServerContext* context,
                                                  const scheduler::GetClusterStatusRequest*,
                                                  scheduler::GetClusterStatusResponse* response) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  if (Status s = may_see_cluster(*caller); !s) return status_of(s.error());
  put_cluster(*parts.service.view(), *response);
  return grpc::Status::OK;
}

grpc::Status SchedulerRpc::Impl::WatchEvents(ServerContext* context,
                                             const scheduler::WatchEventsRequest* request,
                                             grpc::ServerWriter<scheduler::Event>* stream) {
  Result<Caller> caller = caller_of(*context);
  if (!caller) return status_of(caller.error());
  EventFilter filter;
  filter.tenant = request->tenant_id();
  filter.types.assign(request->types().begin(), request->types().end());
  if (const auto only = only_tenant(*caller)) {
    if (!filter.tenant.empty() && filter.tenant != *only)
      return status_of(may_see(*caller, filter.tenant).error());
    filter.tenant = *only;
    filter.of_tenant_only = true;
  }
  EventBus& bus = parts.service.events();
  std::uint64_t after = request->after() == 0 ? bus.last() : request->after();
  while (!stopping && !context->IsCancelled()) {
    const EventBus::Page page = bus.read(after, filter, 256);
    if (page.lost)
      return {grpc::StatusCode::DATA_LOSS, "events after this one are not kept any more"};
    after = page.next;
    for (const auto& event : page.events) {
      scheduler::Event message;
      put_event(*event, message);
      if (!stream->Write(message)) return grpc::Status::OK;
    }
    if (page.events.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return grpc::Status::OK;
}

SchedulerRpc::SchedulerRpc(SchedulerRpcParts parts)
    : impl_(std::make_unique<Impl>(std::move(parts))) {}
SchedulerRpc::~SchedulerRpc() = default;
grpc::Service& SchedulerRpc::rpc() { return *impl_; }
void SchedulerRpc::stop() { impl_->stopping = true; }

}  // namespace gs
