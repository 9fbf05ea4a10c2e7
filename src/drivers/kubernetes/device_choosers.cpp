#include "drivers/kubernetes/device_choosers.hpp"

namespace gs::kube {

void DeviceChoosers::place(const std::string& uid, const std::string& node, Chooser chooser) {
  if (chooser == Chooser::Nobody) return lift(uid);
  std::pair<std::string, Chooser> now{node, chooser};
  if (const auto it = placed_.find(uid); it != placed_.end()) {
    if (it->second == now) return;
    lift(uid);
  }
  Pods& pods = chooser == Chooser::Kubelet ? by_kubelet_ : by_scheduler_;
  if (++pods[node] == 1) ++version_;
  placed_[uid] = std::move(now);
}

void DeviceChoosers::lift(const std::string& uid) {
  const auto it = placed_.find(uid);
  if (it == placed_.end()) return;
  const auto& [node, chooser] = it->second;
  Pods& pods = chooser == Chooser::Kubelet ? by_kubelet_ : by_scheduler_;
  if (const auto count = pods.find(node); --count->second == 0) {
    pods.erase(count);
    ++version_;
  }
  placed_.erase(it);
}

const DeviceChoosers::Pods& DeviceChoosers::of_the_other_kind(Chooser chooser) const {
  static const Pods kNone;
  return chooser == Chooser::Kubelet     ? by_scheduler_
         : chooser == Chooser::Scheduler ? by_kubelet_
                                         : kNone;
}

}  // namespace gs::kube
