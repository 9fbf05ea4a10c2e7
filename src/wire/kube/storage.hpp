// Volumes, as far as they bind a pod to nodes.
#pragma once

#include "base/result.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

inline constexpr const char* kSelectedNodeAnnotation = "volume.kubernetes.io/selected-node";

// volumeMode, where none is given. Any other word is compared as it stands.
inline constexpr const char* kFilesystemMode = "Filesystem";

struct PersistentVolumeClaim {
  Meta meta;
  std::string volume;         // empty: not bound
  std::string storage_class;  // with has_class: given, perhaps as "" (no class)
  bool has_class = false;
  bool bound = false;  // phase
  bool lost = false;   // its volume is gone
  std::string volume_mode = kFilesystemMode;
  std::vector<std::string> access_modes;
  Quantity size;
  std::optional<LabelSelector> selector;
  const std::string* selected_node() const { return meta.annotation(kSelectedNodeAnnotation); }
};

struct PersistentVolume {
  Meta meta;
  std::string storage_class;
  std::string claim_namespace, claim_name, claim_uid;  // claimRef
  std::string phase;                                   // "Available", "Bound", ...
  std::string volume_mode = kFilesystemMode;
  std::vector<std::string> access_modes;
  Quantity size;
  std::optional<std::vector<NodeTerm>> nodes;  // nodeAffinity.required: any of these
};

struct StorageClass {
  Meta meta;
  std::string provisioner;
  bool wait_for_pod = false;  // volumeBindingMode WaitForFirstConsumer
  bool is_default = false;
  std::vector<NodeTerm> allowed;  // allowedTopologies: any of these; empty: everywhere
};

Result<PersistentVolumeClaim> decode_volume_claim(std::string_view text);
Result<PersistentVolume> decode_volume(std::string_view text);
Result<StorageClass> decode_storage_class(std::string_view text);

}  // namespace gs::kube
