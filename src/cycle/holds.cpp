#include "cycle/holds.hpp"

#include <algorithm>

namespace gs {

void raise_to(Hold& hold, const Hold& need) {
  hold.cpu_milli = std::max(hold.cpu_milli, need.cpu_milli);
  hold.memory_bytes = std::max(hold.memory_bytes, need.memory_bytes);
  for (const auto& [id, amount] : need.named) {
    const auto same = std::find_if(hold.named.begin(), hold.named.end(),
                                   [&, name = id](const auto& n) { return n.first == name; });
    if (same == hold.named.end())
      hold.named.emplace_back(id, amount);
    else
      same->second = std::max(same->second, amount);
  }
  for (const Hold::Part& part : need.parts) {
    const auto same = std::find_if(hold.parts.begin(), hold.parts.end(),
                                   [&](const Hold::Part& p) { return p.gpu == part.gpu; });
    if (same == hold.parts.end()) {
      hold.parts.push_back(part);
    } else {
      same->milli = std::max(same->milli, part.milli);
      same->memory_mib = std::max(same->memory_mib, part.memory_mib);
    }
  }
  hold.mig_gpus.insert(hold.mig_gpus.end(), need.mig_gpus.begin(), need.mig_gpus.end());
}

void Holds::add(Instant start, std::vector<Need> needs) {
  lift();
  reserved_.push_back({start, std::move(needs)});
  most_.clear();
}

void Holds::hold(const std::vector<Need>& needs) {
  if (up_ == &needs) return;
  lift();
  up_ = &needs;
  for (const auto& [node, need] : needs) cluster_.hold(node, need, +1);
}

void Holds::lift() {
  if (up_ != nullptr)
    for (const auto& [node, need] : *up_) cluster_.hold(node, need, -1);
  up_ = nullptr;
}

const std::vector<Holds::Need>& Holds::most_before(Instant end) {
  std::vector<bool> who;
  for (const Reserved& reserved : reserved_) who.push_back(reserved.start < end);
  const auto [it, added] = most_.try_emplace(std::move(who));
  if (!added) return it->second;
  std::map<NodeId, Hold> most;
  for (const Reserved& reserved : reserved_)
    if (reserved.start < end)
      for (const auto& [node, need] : reserved.needs) raise_to(most[node], need);
  it->second.assign(most.begin(), most.end());
  return it->second;
}

void Holds::put_up(Instant end) { hold(most_before(end)); }

void Holds::put_up_mig() {
  lift();
  mig_.clear();
  for (const Reserved& reserved : reserved_)
    for (const auto& [node, need] : reserved.needs)
      if (!need.mig_gpus.empty()) mig_.emplace_back(node, Hold{0, 0, {}, {}, need.mig_gpus});
  hold(mig_);
}

}  // namespace gs
