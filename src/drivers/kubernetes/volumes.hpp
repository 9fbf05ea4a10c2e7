// Volumes: where a pod may go because of its volume claims, and which volume each claim gets there.
//
// A claim that is bound leads to the nodes of its volume. One that waits for its first pod
// (WaitForFirstConsumer) gets a volume that is there and fits, or one that is made on the node.
// What was chosen for a pod that is not bound yet is nobody else's (assume, forget).
//
// No thread, clock or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drivers/kubernetes/orders.hpp"
#include "wire/kube/storage.hpp"

namespace gs::kube {

class Volumes {
 public:
  void put(PersistentVolumeClaim claim);
  void remove_claim(const std::string& ns, const std::string& name);
  void put(PersistentVolume volume);
  void remove_volume(const std::string& name);
  void put(StorageClass storage_class);
  void remove_class(const std::string& name);
  // Grows whenever choose() may have changed.
  std::uint64_t version() const { return version_; }

  // Why no node will do, whatever else is free; empty: some may.
  std::string waits_for(const Pod& pod) const;
  // Whether its claims say anything about nodes.
  bool concern(const Pod& pod) const;
  // What has to be done on this node; nothing: the pod can't go there.
  std::optional<std::vector<VolumeChoice>> choose(const Pod& pod, const gs::Node& node) const;

  void assume(const Pod& pod, const std::vector<VolumeChoice>& choices);
  void forget(const std::string& uid);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  const StorageClass* class_of(const PersistentVolumeClaim& claim) const;
  bool fits(const PersistentVolume& volume, const PersistentVolumeClaim& claim,
            const gs::Node& node, const std::string& uid) const;
  std::optional<VolumeChoice> choose_for(const PersistentVolumeClaim& claim, const gs::Node& node,
                                         const std::string& uid,
                                         const std::set<std::string>& taken) const;
  bool is_taken(const PersistentVolumeClaim& claim, const std::string& uid) const;

  std::map<Key, PersistentVolumeClaim> claims_;
  std::map<std::string, PersistentVolume> volumes_;
  std::map<std::string, StorageClass> classes_;
  std::map<std::string, std::string> assumed_;  // volume: uid of the pod
  std::map<Key, std::set<std::string>> users_;  // of claims: pods that have a node
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<Key>>> of_pod_;
  std::uint64_t version_ = 1;
};

}  // namespace gs::kube
