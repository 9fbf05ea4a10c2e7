// Bodies of the REST API: whatever comes, decoding answers with a value or an error that has words;
// what it accepts is written and read again as the same thing, and the engine's value is valid.
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "wire/job_json.hpp"
#include "wire/node_json.hpp"
#include "wire/tenant_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const gs::Result<gs::JobSpec> spec = gs::parse_job(text);
  if (spec) {
    const gs::Result<gs::JobSpec> again = gs::parse_job(gs::encode_job(*spec));
    CHECK_MSG(again.ok() && *again == *spec, "a job is not the same after a round trip");
    const gs::Status valid = gs::validate(gs::to_job(*spec, "job-1", gs::Instant{1}));
    CHECK_MSG(valid.ok(), valid.ok() ? "" : "the engine refuses it: " + valid.error().message);
  } else {
    CHECK(!spec.error().message.empty());
  }
  if (const gs::Result<gs::Json> json = gs::parse_json(text)) {
    if (const auto tenant = gs::read_tenant(*json); tenant && gs::validate(*tenant))
      CHECK(gs::validate(gs::to_tenant(*tenant, "tenant-1")).ok());
    (void)gs::update_tenant({}, *json);
    (void)gs::read_node(*json);
  }
  (void)gs::decode_processes(text);
  return 0;
}
