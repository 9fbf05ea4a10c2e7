#include "cycle/eviction_order.hpp"

namespace gs {

void EvictionOrder::note(Seq victim, Seq for_job) {
  evictors_[victim].insert(for_job);
  victims_[for_job].insert(victim);
}

std::set<EvictionOrder::Seq> EvictionOrder::above(Seq job) const {
  std::set<Seq> found;
  std::vector<Seq> open{job};
  while (!open.empty()) {
    const auto it = evictors_.find(open.back());
    open.pop_back();
    if (it == evictors_.end()) continue;
    for (const Seq evictor : it->second)
      if (found.insert(evictor).second) open.push_back(evictor);
  }
  return found;
}

std::vector<EvictionOrder::Seq> EvictionOrder::evicted_for(Seq job) const {
  const auto it = evictors_.find(job);
  if (it == evictors_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

namespace {

using Links = std::map<EvictionOrder::Seq, std::set<EvictionOrder::Seq>>;

void erase_from(Links& links, EvictionOrder::Seq key, EvictionOrder::Seq value) {
  const auto it = links.find(key);
  if (it == links.end()) return;
  it->second.erase(value);
  if (it->second.empty()) links.erase(it);
}

}  // namespace

void EvictionOrder::erase(Seq victim, Seq for_job) {
  erase_from(evictors_, victim, for_job);
  erase_from(victims_, for_job, victim);
}

void EvictionOrder::forget(Seq job) {
  if (const auto it = evictors_.find(job); it != evictors_.end()) {
    for (const Seq evictor : it->second) erase_from(victims_, evictor, job);
    evictors_.erase(it);
  }
  if (const auto it = victims_.find(job); it != victims_.end()) {
    for (const Seq victim : it->second) erase_from(evictors_, victim, job);
    victims_.erase(it);
  }
}

void EvictionOrder::add_to(Hash& hash) const {
  for (const auto& [victim, evictors] : evictors_) {
    hash.add(victim);
    for (const Seq evictor : evictors) hash.add(evictor);
  }
}

}  // namespace gs
