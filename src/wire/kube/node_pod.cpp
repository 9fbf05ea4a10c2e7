#include "wire/kube/node_pod.hpp"

#include "wire/kube/claim.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

Result<std::optional<NodePod>> decode_node_pod(std::string_view text) {
  const Result<Pod> pod = decode_pod(text);
  if (!pod) return pod.error();
  if (pod->ended()) return std::optional<NodePod>();
  NodePod out{pod->meta.ns, pod->meta.name, pod->meta.uid, {}};
  if (const std::string* given = pod->meta.annotation(kAllocatedAnnotation)) {
    const Result<Allocated> allocated = parse_allocated(*given);
    if (allocated && allocated->node == pod->node_name) out.gpus = allocated->gpus;
  }
  return std::optional<NodePod>(std::move(out));
}

}  // namespace gs::kube
