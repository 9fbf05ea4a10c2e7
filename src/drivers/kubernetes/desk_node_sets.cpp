// Volume claims at the desk, and who chooses devices: they, too, become sets of nodes, beside rules
// between pods.
#include <algorithm>

#include <fmt/format.h>

#include "drivers/kubernetes/desk.hpp"
#include "wire/kube/names.hpp"
#include "wire/kube/pod_resources.hpp"

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

// Whoever is bound has what was written on it, by us or by another of our schedulers.
Chooser Desk::chooser_of(const PodRecord& record) const {
  if (!options_.kubelet_chooses) return Chooser::Nobody;
  const Pod& pod = record.pod;
  const Result<PodResources> takes = pod_resources(pod);
  if (takes && (takes->gpus > 0 || !takes->mig.empty())) return Chooser::Kubelet;
  if (!pod.node_name.empty())
    return pod.meta.annotation(kAllocatedAnnotation) != nullptr ? Chooser::Scheduler
                                                                : Chooser::Nobody;
  if (!is_ours(pod)) return Chooser::Nobody;
  const GpuRequest& gpu = record.ask.request->gpu;
  return gpu.count > 0 || !gpu.mig.empty() ? Chooser::Scheduler : Chooser::Nobody;
}

// ---------------------------------------------------------------- beside rules between pods

std::uint64_t Desk::rules_version() const {
  return rules_.version() + volumes_.version() + choosers_.version();
}

std::optional<RuleBook> Desk::book_of(const Pod& pod,
                                      const std::vector<const Pod*>& fellows) const {
  std::optional<RuleBook> book = rules_.book(pod, fellows);
  const Chooser chooser = pods_.at(pod.meta.uid).chooser;
  const bool concerns =
      choosers_.concern(chooser) ||
      std::any_of(fellows.begin(), fellows.end(), [&](const Pod* fellow) {
        return options_.kubelet_chooses && stay_apart(chooser, pods_.at(fellow->meta.uid).chooser);
      });
  if (concerns) {
    if (!book) book.emplace();
    book->chooser = chooser;
    book->key += chooser == Chooser::Kubelet ? "\nthe kubelet chooses" : "\nwe choose";
  }
  if (pod.volume_claims.empty() || !volumes_.concern(pod)) return book;
  if (!book) book.emplace();
  book->volumes_of = pod.meta.uid;
  book->key += "\nvolumes of " + pod.meta.uid;
  return book;
}

std::set<std::string> Desk::nodes_for(const RuleBook& book, const LabelTerms& terms) const {
  std::set<std::string> names = nodes_like(terms);
  std::erase_if(names,
                [&](const std::string& name) { return !choosers_.allow(book.chooser, name); });
  const auto it = pods_.find(book.volumes_of);
  if (it == pods_.end()) return names;
  std::erase_if(names, [&](const std::string& name) {
    return !volumes_.choose(it->second.pod, *rules_.nodes().at(name)).has_value();
  });
  return names;
}

// As if those were placed, too.
std::set<std::string> Desk::nodes_beside(const RuleBook& book,
                                         const std::vector<PodRules::Beside>& tied) {
  std::set<std::string> names = nodes_for(book, rules_.terms_beside(book, tied));
  for (const auto& [pod, node] : tied)
    if (stay_apart(book.chooser, pods_.at(pod->meta.uid).chooser)) names.erase(node);
  return names;
}

bool Desk::may_stand(const Pod& pod, const std::string& node) {
  if (!rules_.allows(pod, node) || !choosers_.allow(pods_.at(pod.meta.uid).chooser, node))
    return false;
  const auto it = rules_.nodes().find(node);
  return pod.volume_claims.empty() || it == rules_.nodes().end() ||
         volumes_.choose(pod, *it->second).has_value();
}

void Desk::count_in(const Pod& pod, const std::string& node) {
  rules_.place(pod, node);
  choosers_.place(pod.meta.uid, node, pods_.at(pod.meta.uid).chooser);
  if (pod.volume_claims.empty()) return;
  const auto it = rules_.nodes().find(node);
  const bool chooses = pod.node_name.empty() && it != rules_.nodes().end();
  volumes_.assume(pod, chooses
                           ? volumes_.choose(pod, *it->second).value_or(std::vector<VolumeChoice>{})
                           : std::vector<VolumeChoice>{});
}

void Desk::count_out(const std::string& uid) {
  (void)rules_.lift(uid);
  choosers_.lift(uid);
  volumes_.forget(uid);
}

// What the rules and volumes of a waiting pod, and who chooses its devices, leave of the nodes;
// empty: all.
std::string Desk::rule_words(const PodRecord& record) {
  const std::optional<RuleBook> book = book_of(record.pod, {});
  if (!book) return {};
  std::string text = rules_.words(*book);
  const std::size_t all = rules_.nodes().size();
  const auto say = [&](const char* what, const auto& allows) {
    const auto left = static_cast<std::size_t>(
        std::count_if(rules_.nodes().begin(), rules_.nodes().end(), allows));
    if (left < all)
      text += fmt::format("{}{} {} of {} nodes", text.empty() ? "" : ", ", what, left, all);
  };
  if (!book->volumes_of.empty())
    say("its volume claims leave",
        [&](const auto& node) { return volumes_.choose(record.pod, *node.second).has_value(); });
  say(book->chooser == Chooser::Kubelet ? "pods that were told their devices leave"
                                        : "pods whose devices the kubelet chooses leave",
      [&](const auto& node) { return choosers_.allow(book->chooser, node.first); });
  return text;
}

}  // namespace gs::kube
