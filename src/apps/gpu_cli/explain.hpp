// Answers of the scheduler in words: why a job waits and when it starts, where it runs and why
// there, whether one would start.
#pragma once

#include <string>

#include "base/time.hpp"
#include "wire/json_reader.hpp"

namespace gs::cli {

// `job` as GET /jobs/ID gives it, `answer` as GET /jobs/ID/explain does.
std::string why_words(const Json& job, const Json& answer, Instant now, bool colour);
// `answer` as the Kubernetes scheduler's /explain gives it.
std::string pod_words(const Json& answer, Instant now, bool colour);
std::string dry_run_words(const Json& answer, bool colour);
// "vm GPUs 0-3, n2 GPU 5"
std::string places_words(const Json& places);

}  // namespace gs::cli
