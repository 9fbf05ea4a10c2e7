// Objects of Kubernetes: whatever comes, decoding answers with a value or an error that has words.
// Text that is JSON is never called broken JSON. What the engine gets of an accepted pod or node is
// valid.
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/lease.hpp"
#include "wire/kube/node_model.hpp"
#include "wire/kube/policy.hpp"
#include "wire/kube/storage.hpp"
#include "wire/kube/task_request.hpp"
#include "wire/kube/workload.hpp"

namespace {

template <typename T>
void expect_words(const gs::Result<T>& result, bool is_json) {
  if (result.ok()) return;
  CHECK(!result.error().message.empty());
  CHECK(!is_json || !result.error().message.starts_with("not valid JSON"));
}

void check_pod(const gs::kube::Pod& pod) {
  const auto reading = gs::kube::task_request(pod, {});
  if (reading.ok())
    CHECK(gs::validate(reading->request).ok());
  else
    CHECK(!reading.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gs::kube;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_json = gs::parse_json(text).ok();
  const auto pod = decode_pod(text);
  expect_words(pod, is_json);
  if (pod.ok()) check_pod(*pod);
  const auto node = decode_node(text);
  expect_words(node, is_json);
  const auto report = decode_node_status(text);
  expect_words(report, is_json);
  if (node.ok())
    for (const GpuNodeStatus* of :
         {static_cast<const GpuNodeStatus*>(nullptr), report.ok() ? &*report : nullptr})
      if (node->meta.name.size() <= 253)
        CHECK(gs::validate(to_node(*node, of, SchedulerConfig()).node).ok());
  expect_words(decode_lease(text), false);
  expect_words(decode_volume_claim(text), is_json);
  expect_words(decode_volume(text), is_json);
  expect_words(decode_storage_class(text), is_json);
  expect_words(decode_priority_class(text), is_json);
  expect_words(decode_disruption_budget(text), is_json);
  expect_words(decode_namespace(text), is_json);
  expect_words(decode_workload(text), is_json);
  expect_words(decode_pod_group(text), is_json);
  expect_words(decode_watch_event(text), is_json);
  expect_words(decode_status(text), is_json);
  expect_words(decode_list(text, [](std::string_view) {}), is_json);
  return 0;
}
