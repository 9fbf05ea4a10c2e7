// Our own kinds: what is accepted is valid for the engine, and its status survives a round trip.
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/encode.hpp"
#include "wire/kube/scheduler_config.hpp"
#include "wire/kube/task_request.hpp"
#include "wire/kube/tenant.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs::kube;
  if (size > 8192) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto claim = decode_claim(text);
  if (claim.ok()) {
    RequestContext context;
    context.claim = &*claim;
    Pod pod;
    pod.meta.name = "p";
    const auto reading = task_request(pod, context);
    CHECK_MSG(reading.ok(), reading.ok() ? "" : reading.error().message);
    CHECK(gs::parse_json(encode_claim_status("ns", "name", claim->status)).ok());
  } else {
    CHECK(!claim.error().message.empty());
  }
  if (const auto report = decode_node_status(text); report.ok())
    CHECK(gs::parse_json(encode_node_status(*report)).ok());
  if (const auto tenant = decode_tenant(text); tenant.ok())
    CHECK(gs::validate(tenant->tenant).ok());
  for (const auto& config : {decode_scheduler_config(text), scheduler_config_of_yaml(text),
                             scheduler_config_of_map(text)})
    if (config.ok()) {
      CHECK(gs::validate(config->engine).ok());
      Meta node;
      node.name = "n";
      const auto path = network_path(node, *config);
      CHECK(path.empty() || path.size() == config->levels.size());
    }
  return 0;
}
