// DeviceChoosers: who chooses the devices of the pods on each node.
//
// We choose by name, and the kubelet chooses for pods with a limit of nvidia.com/gpu. Its device
// plugin knows nothing of devices that were given by name, and would give them again. So pods of
// one kind stay off nodes where pods of the other kind are.
//
// No thread, clock or I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace gs::kube {

enum class Chooser : std::uint8_t { Nobody, Scheduler, Kubelet };  // Nobody: it gets no device

inline bool stay_apart(Chooser a, Chooser b) {
  return a != b && a != Chooser::Nobody && b != Chooser::Nobody;
}

class DeviceChoosers {
 public:
  // It is bound to the node, or about to be; until lift().
  void place(const std::string& uid, const std::string& node, Chooser chooser);
  void lift(const std::string& uid);
  // Grows whenever allow() may have changed.
  std::uint64_t version() const { return version_; }

  // Whether pods of the other kind are anywhere.
  bool concern(Chooser chooser) const { return !of_the_other_kind(chooser).empty(); }
  bool allow(Chooser chooser, const std::string& node) const {
    return !of_the_other_kind(chooser).contains(node);
  }

 private:
  using Pods = std::map<std::string, int>;  // how many by node; none is zero

  const Pods& of_the_other_kind(Chooser chooser) const;

  Pods by_scheduler_, by_kubelet_;
  std::unordered_map<std::string, std::pair<std::string, Chooser>> placed_;  // by uid
  std::uint64_t version_ = 0;
};

}  // namespace gs::kube
