// A job as users write it (JSON of the REST API) <-> JobSpec, and the processes of a placed one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/process.hpp"
#include "model/spec.hpp"
#include "wire/json_reader.hpp"

namespace gs {

// Decoding is validating: the error names the field and the rule.
Result<JobSpec> decode_job(const Json& json, int default_priority = 100);
Result<JobSpec> parse_job(std::string_view text, int default_priority = 100);
// Only what differs from the defaults, so that parse_job(encode_job(spec)) == spec.
std::string encode_job(const JobSpec& spec);

std::string encode_processes(const std::vector<Process>& processes);
Result<std::vector<Process>> decode_processes(std::string_view text);

}  // namespace gs
