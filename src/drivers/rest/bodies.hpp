// Rows and answers of the engine as the bodies that the API sends.
#pragma once

#include "engine/engine.hpp"
#include "service/access.hpp"
#include "service/records.hpp"
#include "service/view.hpp"
#include "wire/json_reader.hpp"

namespace gs {

Json job_body(const JobRow& row);
Json tenant_body(const TenantRow& row);
// Which jobs hold a GPU is told of those only that the caller may see.
Json node_body(const NodeView& node, const Caller& caller);
Json gpu_body(const NodeView& node, const GpuView& gpu, const Caller& caller);
Json cluster_body(const ClusterView& view);
Json why_body(const Why& why);
Json explanation_body(const Explanation& answer);
Json dry_run_body(const DryRun& answer);
Json usage_body(const UsageRow& row);

}  // namespace gs
