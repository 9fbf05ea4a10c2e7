#include "wire/kube/gang.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

constexpr int kMaxGang = 100'000;

// A LeaderWorkerSet makes several groups of pods, which tell theirs by these.
constexpr const char* kSetNameLabel = "leaderworkerset.sigs.k8s.io/name";
constexpr const char* kGroupIndexLabel = "leaderworkerset.sigs.k8s.io/group-index";
constexpr const char* kGroupSizeAnnotation = "leaderworkerset.sigs.k8s.io/size";

// The gang of a LeaderWorkerSet's pod: its group. Empty: it is none.
std::string worker_group(const Meta& pod) {
  const std::string *set = pod.label(kSetNameLabel), *index = pod.label(kGroupIndexLabel);
  return set == nullptr || index == nullptr ? "" : "LeaderWorkerSet/" + *set + "/" + *index;
}

std::string kind_name(const Workload& owner) { return owner.kind + " " + owner.meta.name; }

Result<int> parse_size(const char* annotation, const std::string& text) {
  int size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size < 1 || size > kMaxGang)
    return invalid(std::string("annotation ") + annotation +
                   " must be a whole number from 1 to 100000, got '" + text.substr(0, 80) + "'");
  return size;
}

}  // namespace

Result<std::optional<std::string>> gang_name(const Meta& pod, const GpuClaim* claim,
                                             const Owners& owners) {
  using Name = std::optional<std::string>;
  if (claim != nullptr && !claim->gang.empty()) return Name(claim->gang);
  if (const std::string* group = pod_group_name(pod)) return Name(*group);
  const Found found = find_annotation(pod, owners, kGangAnnotation);
  if (found.value == nullptr || *found.value == "false") return Name();
  if (found.value->empty())
    return invalid(std::string("annotation ") + kGangAnnotation +
                   " must be \"true\", \"false\" or the name of a gang");
  if (*found.value != "true") return Name(*found.value);
  if (const std::string group = worker_group(pod); found.on == nullptr && !group.empty())
    return Name(group);
  const Workload* owner = found.on;
  if (owner == nullptr && !owners.empty()) owner = owners.back();
  if (owner == nullptr)
    return invalid(std::string("annotation ") + kGangAnnotation +
                   " is \"true\" but nothing owns the pod; name the gang instead");
  return Name(owner->kind + "/" + owner->meta.name);
}

Result<GangAsk> gang_ask(std::string name, const PodGroup* group, const Meta& pod,
                         const Owners& owners) {
  GangAsk ask{std::move(name), std::nullopt, {}};
  if (group != nullptr) {
    ask.size = std::max(1, group->min_member);
    ask.size_from = "PodGroup " + group->meta.name;
    return ask;
  }
  const std::string *own = find_annotation(pod, owners, kGangSizeAnnotation).value,
                    *of_group = pod.annotation(kGroupSizeAnnotation);
  const bool is_worker_group = !ask.name.empty() && ask.name == worker_group(pod);
  if (own != nullptr || (is_worker_group && of_group != nullptr)) {
    const char* says = own != nullptr ? kGangSizeAnnotation : kGroupSizeAnnotation;
    const Result<int> size = parse_size(says, own != nullptr ? *own : *of_group);
    if (!size) return size.error();
    ask.size = *size;
    ask.size_from = std::string("annotation ") + says;
    return ask;
  }
  const Workload* owner = is_worker_group ? nullptr : whole_of(owners);
  for (const Workload* one : owners)  // "Job/train": the gang of that very owner
    if (ask.name == one->kind + "/" + one->meta.name) owner = one;
  if (owner != nullptr && owner->pods && *owner->pods > 0) {
    ask.size = *owner->pods;
    ask.size_from = kind_name(*owner);
    return ask;
  }
  ask.size_from = "the size of gang '" + ask.name + "' is not known: create a PodGroup '" +
                  ask.name + "' with minMember, or set the annotation " + kGangSizeAnnotation +
                  " on its pods";
  return ask;
}

}  // namespace gs::kube
