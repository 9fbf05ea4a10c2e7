// SchedulerService's messages <-> what the service knows.
#pragma once

#include <scheduler.pb.h>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "service/events.hpp"
#include "service/store.hpp"
#include "service/view.hpp"

namespace gs {

Result<JobSpec> spec_of(const scheduler::SubmitJobRequest& request, int default_priority);
std::uint64_t hash_of(const scheduler::SubmitJobRequest& request);
Result<JobQuery> query_of(const scheduler::ListJobsRequest& request);
void put_time(Instant time, google::protobuf::Timestamp& out);
void put_status(const JobRow& row, scheduler::GetJobStatusResponse& out);
void put_waiting(const Explanation& answer, int position, Instant now,
                 scheduler::GetJobStatusResponse& out);
void put_info(const JobRow& row, scheduler::JobInfo& out);
void put_quota(const scheduler::UpdateTenantQuotaRequest& request, TenantSpec& spec);
void put_cluster(const ClusterView& view, scheduler::GetClusterStatusResponse& out);
void put_event(const Published& event, scheduler::Event& out);

}  // namespace gs
