#include "drivers/kubernetes/volumes.hpp"

#include <algorithm>
#include <tuple>

#include "wire/kube/task_request.hpp"

namespace gs::kube {
namespace {

constexpr const char* kNoProvisioner = "kubernetes.io/no-provisioner";
constexpr const char* kOncePod = "ReadWriteOncePod";

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool any_matches(const std::vector<NodeTerm>& terms, const gs::Node& node) {
  const std::vector<LabelTerms> alternatives = node_alternatives(terms);
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const LabelTerms& terms_of_one) {
    return gs::matches(terms_of_one, node.labels);
  });
}

}  // namespace

void Volumes::put(PersistentVolumeClaim claim) {
  ++version_;
  claims_[{claim.meta.ns, claim.meta.name}] = std::move(claim);
}
void Volumes::remove_claim(const std::string& ns, const std::string& name) {
  version_ += claims_.erase({ns, name});
}
void Volumes::put(PersistentVolume volume) {
  ++version_;
  volumes_[volume.meta.name] = std::move(volume);
}
void Volumes::remove_volume(const std::string& name) { version_ += volumes_.erase(name); }
void Volumes::put(StorageClass storage_class) {
  ++version_;
  classes_[storage_class.meta.name] = std::move(storage_class);
}
void Volumes::remove_class(const std::string& name) { version_ += classes_.erase(name); }

const StorageClass* Volumes::class_of(const PersistentVolumeClaim& claim) const {
  const auto it = classes_.find(claim.storage_class);
  return it == classes_.end() ? nullptr : &it->second;
}

bool Volumes::is_taken(const PersistentVolumeClaim& claim, const std::string& uid) const {
  if (!holds(claim.access_modes, kOncePod)) return false;
  const auto it = users_.find({claim.meta.ns, claim.meta.name});
  return it != users_.end() && it->second.size() > it->second.count(uid);
}

std::string Volumes::waits_for(const Pod& pod) const {
  for (const std::string& name : pod.volume_claims) {
    const std::string text = "PersistentVolumeClaim " + pod.meta.ns + "/" + name;
    const auto it = claims_.find({pod.meta.ns, name});
    if (it == claims_.end()) return text + " does not exist";
    const PersistentVolumeClaim& claim = it->second;
    if (claim.meta.deleted) return text + " is being deleted";
    if (claim.lost) return text + " has lost its volume " + claim.volume;
    if (is_taken(claim, pod.meta.uid))
      return text + " is for one pod at a time (ReadWriteOncePod), and another one uses it";
    if (claim.bound) {
      if (!volumes_.contains(claim.volume))
        return "PersistentVolume " + claim.volume + " of " + text + " does not exist";
      continue;
    }
    const StorageClass* klass = class_of(claim);
    if (!claim.storage_class.empty() && klass == nullptr)
      return "StorageClass " + claim.storage_class + " of " + text + " does not exist";
    if (klass == nullptr || !klass->wait_for_pod)
      return text + " is not bound to a volume yet" +
             (klass == nullptr ? ", and names no storage class" : "");
  }
  return {};
}

bool Volumes::concern(const Pod& pod) const {
  return std::any_of(pod.volume_claims.begin(), pod.volume_claims.end(),
                     [&](const std::string& name) {
                       const auto it = claims_.find({pod.meta.ns, name});
                       if (it == claims_.end() || !it->second.bound) return true;
                       const auto volume = volumes_.find(it->second.volume);
                       return volume == volumes_.end() || volume->second.nodes.has_value() ||
                              holds(it->second.access_modes, kOncePod);
                     });
}

// ---------------------------------------------------------------- which volume

bool Volumes::fits(const PersistentVolume& volume, const PersistentVolumeClaim& claim,
                   const gs::Node& node, const std::string& uid) const {
  const bool prebound = volume.claim_namespace == claim.meta.ns &&
                        volume.claim_name == claim.meta.name &&
                        (volume.claim_uid.empty() || volume.claim_uid == claim.meta.uid);
  if (!prebound && (!volume.claim_name.empty() || volume.phase != "Available")) return false;
  if (const auto taken = assumed_.find(volume.meta.name);
      taken != assumed_.end() && taken->second != uid)
    return false;
  if (volume.meta.deleted || volume.storage_class != claim.storage_class) return false;
  if (volume.volume_mode != claim.volume_mode || volume.size < claim.size) return false;
  if (claim.selector && !matches(*claim.selector, volume.meta.labels)) return false;
  const auto& modes = claim.access_modes;
  if (!std::all_of(modes.begin(), modes.end(),
                   [&](const std::string& mode) { return holds(volume.access_modes, mode); }))
    return false;
  return !volume.nodes || any_matches(*volume.nodes, node);
}

// The smallest that will do.
std::optional<VolumeChoice> Volumes::choose_for(const PersistentVolumeClaim& claim,
                                                const gs::Node& node, const std::string& uid,
                                                const std::set<std::string>& taken) const {
  const std::string* selected = claim.selected_node();
  if (selected != nullptr && *selected != node.name) return std::nullopt;
  const PersistentVolume* best = nullptr;
  for (const auto& [name, volume] : volumes_) {
    if (taken.contains(name) || !fits(volume, claim, node, uid)) continue;
    if (best == nullptr || volume.size < best->size) best = &volume;
  }
  VolumeChoice choice{claim.meta.name, claim.meta.uid, {}, {}};
  if (best != nullptr) {
    choice.volume = best->meta.name;
    choice.volume_version = best->meta.resource_version;
    return choice;
  }
  const StorageClass* klass = class_of(claim);
  if (klass == nullptr || klass->provisioner == kNoProvisioner) return std::nullopt;
  if (!klass->allowed.empty() && !any_matches(klass->allowed, node)) return std::nullopt;
  return choice;
}

std::optional<std::vector<VolumeChoice>> Volumes::choose(const Pod& pod,
                                                         const gs::Node& node) const {
  std::vector<VolumeChoice> choices;
  std::set<std::string> taken;
  for (const std::string& name : pod.volume_claims) {
    const auto it = claims_.find({pod.meta.ns, name});
    if (it == claims_.end() || is_taken(it->second, pod.meta.uid)) return std::nullopt;
    if (it->second.bound) {
      const auto volume = volumes_.find(it->second.volume);
      if (volume == volumes_.end()) return std::nullopt;
      if (volume->second.nodes && !any_matches(*volume->second.nodes, node)) return std::nullopt;
      continue;
    }
    std::optional<VolumeChoice> choice = choose_for(it->second, node, pod.meta.uid, taken);
    if (!choice) return std::nullopt;
    taken.insert(choice->volume);
    choices.push_back(std::move(*choice));
  }
  return choices;
}

void Volumes::assume(const Pod& pod, const std::vector<VolumeChoice>& choices) {
  if (pod.volume_claims.empty()) return;
  forget(pod.meta.uid);
  auto& [volumes, claims] = of_pod_[pod.meta.uid];
  for (const VolumeChoice& choice : choices) {
    if (choice.volume.empty()) continue;
    assumed_[choice.volume] = pod.meta.uid;
    volumes.push_back(choice.volume);
  }
  for (const std::string& name : pod.volume_claims) {
    users_[{pod.meta.ns, name}].insert(pod.meta.uid);
    claims.emplace_back(pod.meta.ns, name);
  }
  ++version_;
}

void Volumes::forget(const std::string& uid) {
  const auto it = of_pod_.find(uid);
  if (it == of_pod_.end()) return;
  for (const std::string& volume : it->second.first) assumed_.erase(volume);
  for (const Key& key : it->second.second) {
    users_[key].erase(uid);
    if (users_[key].empty()) users_.erase(key);
  }
  of_pod_.erase(it);
  ++version_;
}

}  // namespace gs::kube
