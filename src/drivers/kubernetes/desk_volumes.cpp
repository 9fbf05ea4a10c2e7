// Volume claims at the desk: they, too, become sets of nodes, beside rules between pods.
#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {

void Desk::put(PersistentVolumeClaim claim) {
  volumes_.put(std::move(claim));
  volumes_changed();
}
void Desk::remove_volume_claim(const std::string& ns, const std::string& name) {
  volumes_.remove_claim(ns, name);
  volumes_changed();
}
void Desk::put(PersistentVolume volume) {
  volumes_.put(std::move(volume));
  volumes_changed();
}
void Desk::remove_volume(const std::string& name) {
  volumes_.remove_volume(name);
  volumes_changed();
}
void Desk::put(StorageClass storage_class) {
  volumes_.put(std::move(storage_class));
  volumes_changed();
}
void Desk::remove_storage_class(const std::string& name) {
  volumes_.remove_class(name);
  volumes_changed();
}

void Desk::volumes_changed() {
  for (const std::string& uid :
       std::vector<std::string>(volume_waiters_.begin(), volume_waiters_.end()))
    reconsider(uid);
}

void Desk::ask_volumes(PodRecord& record) {
  const std::string& uid = record.pod.meta.uid;
  volume_waiters_.erase(uid);
  if (record.pod.volume_claims.empty() || !record.pod.node_name.empty()) return;
  std::string waits = volumes_.waits_for(record.pod);
  if (waits.empty() || !record.ask.waits_for.empty()) return;
  record.ask.waits_for = std::move(waits);
  record.ask.reason = "VolumeNotReady";
  volume_waiters_.insert(uid);
}

// ---------------------------------------------------------------- beside rules between pods

std::uint64_t Desk::rules_version() const { return rules_.version() + volumes_.version(); }

std::optional<RuleBook> Desk::book_of(const Pod& pod,
                                      const std::vector<const Pod*>& fellows) const {
  std::optional<RuleBook> book = rules_.book(pod, fellows);
  if (pod.volume_claims.empty() || !volumes_.concern(pod)) return book;
  if (!book) book.emplace();
  book->volumes_of = pod.meta.uid;
  book->key += "\nvolumes of " + pod.meta.uid;
  return book;
}

std::set<std::string> Desk::nodes_for(const RuleBook& book, const LabelTerms& terms) const {
  std::set<std::string> names = nodes_like(terms);
  const auto it = pods_.find(book.volumes_of);
  if (it == pods_.end()) return names;
  std::erase_if(names, [&](const std::string& name) {
    return !volumes_.choose(it->second.pod, *rules_.nodes().at(name)).has_value();
  });
  return names;
}

bool Desk::may_stand(const Pod& pod, const std::string& node) {
  if (!rules_.allows(pod, node)) return false;
  const auto it = rules_.nodes().find(node);
  return pod.volume_claims.empty() || it == rules_.nodes().end() ||
         volumes_.choose(pod, *it->second).has_value();
}

void Desk::count_in(const Pod& pod, const std::string& node) {
  rules_.place(pod, node);
  if (pod.volume_claims.empty()) return;
  const auto it = rules_.nodes().find(node);
  const bool chooses = pod.node_name.empty() && it != rules_.nodes().end();
  volumes_.assume(pod, chooses
                           ? volumes_.choose(pod, *it->second).value_or(std::vector<VolumeChoice>{})
                           : std::vector<VolumeChoice>{});
}

void Desk::count_out(const std::string& uid) {
  (void)rules_.lift(uid);
  volumes_.forget(uid);
}

// What the rules and volumes of a waiting pod leave of the nodes; empty: all.
std::string Desk::rule_words(const PodRecord& record) {
  const std::optional<RuleBook> book = book_of(record.pod, {});
  if (!book) return {};
  std::string text = rules_.words(*book);
  if (book->volumes_of.empty()) return text;
  const std::size_t left = nodes_for(*book, {}).size();
  if (left == rules_.nodes().size()) return text;
  return text + (text.empty() ? "" : ", ") + "its volume claims leave " + std::to_string(left) +
         " of " + std::to_string(rules_.nodes().size()) + " nodes";
}

}  // namespace gs::kube
