#include "wire/kube/storage.hpp"

namespace gs::kube {
namespace {

void read_size(Cursor& in, Quantity& size) {
  ResourceList list;
  read(in, list);
  if (const Quantity* storage = find(list, "storage")) size = *storage;
}

void read_mode(Cursor& in, std::string& mode) {
  in.read(mode);
  if (mode.empty()) mode = kFilesystemMode;
}

void read_claim_spec(Cursor& in, PersistentVolumeClaim& claim) {
  in.object([&](std::string_view field) {
    if (field == "volumeName") in.read(claim.volume);
    if (field == "storageClassName" && in.next() == '"') {
      claim.has_class = true;
      in.read(claim.storage_class);
    }
    if (field == "volumeMode") read_mode(in, claim.volume_mode);
    if (field == "accessModes") in.read(claim.access_modes);
    if (field == "selector") read(in, claim.selector);
    if (field == "resources")
      in.object([&](std::string_view inner) {
        if (inner == "requests") read_size(in, claim.size);
      });
  });
}

void read_volume_spec(Cursor& in, PersistentVolume& volume) {
  in.object([&](std::string_view field) {
    if (field == "storageClassName") in.read(volume.storage_class);
    if (field == "volumeMode") read_mode(in, volume.volume_mode);
    if (field == "accessModes") in.read(volume.access_modes);
    if (field == "capacity") read_size(in, volume.size);
    if (field == "claimRef")
      in.object([&](std::string_view inner) {
        if (inner == "namespace") in.read(volume.claim_namespace);
        if (inner == "name") in.read(volume.claim_name);
        if (inner == "uid") in.read(volume.claim_uid);
      });
    if (field == "nodeAffinity")
      in.object([&](std::string_view inner) {
        if (inner != "required") return;
        in.object([&](std::string_view terms) {
          if (terms != "nodeSelectorTerms") return;
          if (!volume.nodes) volume.nodes.emplace();
          in.array([&] { read(in, volume.nodes->emplace_back()); });
        });
      });
  });
}

// allowedTopologies: a term is {"matchLabelExpressions":[{"key","values"}]}.
void read_allowed(Cursor& in, NodeTerm& term) {
  in.object([&](std::string_view field) {
    if (field == "matchLabelExpressions") in.array([&] { read(in, term.labels.emplace_back()); });
  });
}

}  // namespace

Result<PersistentVolumeClaim> decode_volume_claim(std::string_view text) {
  PersistentVolumeClaim claim;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, claim.meta);
    if (field == "spec") read_claim_spec(in, claim);
    if (field == "status")
      in.object([&](std::string_view inner) {
        if (inner != "phase") return;
        std::string phase;
        in.read(phase);
        claim.bound = phase == "Bound";
        claim.lost = phase == "Lost";
      });
  });
  if (const Status status = in.finish(); !status) return status.error();
  return claim;
}

Result<PersistentVolume> decode_volume(std::string_view text) {
  PersistentVolume volume;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, volume.meta);
    if (field == "spec") read_volume_spec(in, volume);
    if (field == "status")
      in.object([&](std::string_view inner) {
        if (inner == "phase") in.read(volume.phase);
      });
  });
  if (const Status status = in.finish(); !status) return status.error();
  return volume;
}

Result<StorageClass> decode_storage_class(std::string_view text) {
  StorageClass klass;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, klass.meta);
    if (field == "provisioner") in.read(klass.provisioner);
    if (field == "volumeBindingMode") {
      std::string mode;
      in.read(mode);
      klass.wait_for_pod = mode == "WaitForFirstConsumer";
    }
    if (field == "allowedTopologies")
      in.array([&] { read_allowed(in, klass.allowed.emplace_back()); });
  });
  if (const Status status = in.finish(); !status) return status.error();
  const std::string* marked = klass.meta.annotation("storageclass.kubernetes.io/is-default-class");
  klass.is_default = marked != nullptr && *marked == "true";
  return klass;
}

}  // namespace gs::kube
