// What people call jobs and tenants, as the ids that the server knows.
#include <algorithm>

#include <fmt/format.h>

#include "apps/gpu_cli/session.hpp"

namespace gs::cli {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

bool is_id(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) && is_number(text.substr(prefix.size()));
}

std::string list_of(const Json& things) {
  std::string out;
  for (const Json& thing : things)
    out += fmt::format("\n  {}  {}", thing.value("id", ""), thing.value("name", ""));
  return out;
}

}  // namespace

Result<std::string> Session::job_id(const std::string& text, bool to_change) {
  if (is_id(text, "job-")) return text;
  if (is_number(text)) return "job-" + text;
  if (text.empty() || text.find('*') != std::string::npos)
    return not_found(fmt::format("Job not found: {}", text));
  const auto find = [&](const char* states) {
    return get("/api/v1/jobs" + query_text({{"name", text}, {"state", states}, {"limit", "20"}}));
  };
  Result<Json> live = find("pending,scheduled,running,preempted");
  if (!live) return live.error();
  const Json& jobs = (*live)["jobs"];
  if (jobs.size() == 1 || (jobs.size() > 1 && !to_change)) return jobs[0].value("id", "");
  if (jobs.size() > 1)
    return Error{ErrorCode::Conflict, fmt::format("{} jobs are called {}; say which one:{}",
                                                  jobs.size(), text, list_of(jobs))};
  Result<Json> any = find("");
  if (!any) return any.error();
  if ((*any)["jobs"].empty())
    return not_found(fmt::format("Job not found: there is no job with the id or name {}", text));
  return (*any)["jobs"][0].value("id", "");
}

Result<std::string> Session::tenant_id(const std::string& given) {
  const std::string& wanted = given.empty() ? access_.tenant : given;
  if (is_id(wanted, "tenant-")) return wanted;
  Result<Json> answer = get("/api/v1/tenants");
  if (!answer) return answer.error();
  Json tenants = Json::array();
  for (const Json& tenant : (*answer)["tenants"])
    if (tenant.value("active", true) && (wanted.empty() || tenant.value("name", "") == wanted))
      tenants.push_back(tenant);
  if (tenants.size() == 1) return tenants[0].value("id", "");
  if (!wanted.empty() && tenants.empty()) return wanted;  // the server says what is wrong with it
  if (!wanted.empty())
    return Error{ErrorCode::Conflict, fmt::format("{} tenants are called {}; say which one:{}",
                                                  tenants.size(), wanted, list_of(tenants))};
  if (tenants.empty())
    return invalid(
        "there is no tenant yet; create one with: gpu-cli tenants create --name NAME --max-gpus N");
  return invalid("for which tenant? Give --tenant-id, or set GPU_SCHEDULER_TENANT_ID; there are:" +
                 list_of(tenants));
}

}  // namespace gs::cli
