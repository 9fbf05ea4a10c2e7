#include "sim/kueue_grade.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gs {
namespace {

const Group& group_named(const KueueCase& c, const std::string& name) {
  return *std::find_if(c.job.groups.begin(), c.job.groups.end(),
                       [&](const Group& g) { return g.name == name; });
}

using Amounts = std::map<std::string, std::int64_t>;

void add(Amounts& amounts, const Resources& resources, std::int64_t gpus, std::int64_t times) {
  amounts["cpu_milli"] += resources.cpu_milli * times;
  amounts["memory_bytes"] += resources.memory_bytes * times;
  for (const NamedAmount& named : resources.named) amounts[named.name] += named.amount * times;
  amounts["gpus"] += gpus * times;
}

// What a leaf has left for the job before any of its tasks is placed.
Amounts room(const KueueCase& c, const KueueLeaf& leaf) {
  Amounts left;
  add(left, leaf.node.capacity, static_cast<std::int64_t>(leaf.node.gpus.size()), 1);
  for (const KueueCase::Use& use : c.used)
    if (use.path == leaf.path) add(left, use.request.resources, use.request.gpu.count, -1);
  return left;
}

std::string over_capacity(const KueueCase& c, const TaskLayout& layout) {
  for (const KueueLeaf& leaf : c.leaves) {
    Amounts left = room(c, leaf);
    Amounts asked;
    for (const auto& [name, parts] : layout) {
      const auto here = parts.find(leaf.path);
      if (here == parts.end()) continue;
      const TaskRequest& request = group_named(c, name).request;
      add(asked, request.resources, request.gpu.count, here->second);
    }
    for (const auto& [resource, amount] : asked)
      if (amount > 0 && amount > left[resource])
        return fmt::format("{} of {}: {} used, {} there", resource, leaf.node.name, amount,
                           left[resource]);
  }
  return {};
}

bool allowed(const Node& node, const TaskRequest& request) {
  if (!node.ready || node.cordoned) return false;
  for (const Taint& taint : node.taints)
    if (taint.effect != TaintEffect::PreferNoSchedule && !tolerates(request.tolerations, taint))
      return false;
  for (const auto& [key, value] : request.selector) {
    const std::string* label = find_label(node.labels, key);
    if (label == nullptr || *label != value) return false;
  }
  return request.affinity.empty() ||
         std::any_of(request.affinity.begin(), request.affinity.end(),
                     [&](const LabelTerms& terms) { return matches(terms, node.labels); });
}

std::size_t depth_of(const KueueCase& c, const std::string& level) {
  const auto it = std::find(c.levels.begin(), c.levels.end(), level);
  return it == c.levels.end() ? c.levels.size()
                              : static_cast<std::size_t>(it - c.levels.begin()) + 1;
}

std::map<DomainPath, int> by_domain(const KueueCase& c, const std::map<DomainPath, int>& parts,
                                    const std::string& level) {
  std::map<DomainPath, int> sums;
  const auto depth = static_cast<std::ptrdiff_t>(depth_of(c, level));
  for (const auto& [path, tasks] : parts) sums[{path.begin(), path.begin() + depth}] += tasks;
  return sums;
}

std::string bad_group(const KueueCase& c, const Group& group,
                      const std::map<DomainPath, int>& parts) {
  int tasks = 0;
  for (const auto& [path, count] : parts) {
    tasks += count;
    const KueueLeaf* leaf = c.find(path);
    if (leaf == nullptr || !allowed(leaf->node, group.request))
      return fmt::format("{} may not run on {}", group.name, fmt::join(path, "/"));
  }
  if (tasks != group.count)
    return fmt::format("{} has {} of {} tasks", group.name, tasks, group.count);
  const std::string& required = group.topology.required_level;
  if (!required.empty() && by_domain(c, parts, required).size() > 1)
    return fmt::format("{} lies in several domains of {}", group.name, required);
  for (const Slice& slice : group.slices)
    for (const auto& [path, count] : by_domain(c, parts, slice.level))
      if (count % slice.size != 0)
        return fmt::format("{}: {} tasks in {}, not whole slices of {}", group.name, count,
                           fmt::join(path, "/"), slice.size);
  return {};
}

std::string split_set(const KueueCase& c, const TaskLayout& layout) {
  for (std::size_t s = 1; s < c.job.sets.size(); ++s) {
    const std::string& required = c.job.sets[s].topology.required_level;
    if (required.empty()) continue;
    std::map<DomainPath, int> all;
    for (const Group& group : c.job.groups)
      if (group.set == static_cast<int>(s))
        for (const auto& [path, tasks] : layout.at(group.name)) all[path] += tasks;
    if (by_domain(c, all, required).size() > 1)
      return fmt::format("{} lies in several domains of {}", c.job.sets[s].name, required);
  }
  return {};
}

std::string leaf_form(const KueueCase& c, const KueueLeaf& leaf, const TaskLayout& layout) {
  std::string form = fmt::format("{}", room(c, leaf));
  for (const std::string& key : c.keys)
    if (const std::string* label = find_label(leaf.node.labels, key))
      form += fmt::format(" {}={}", key, *label);
  for (const Taint& taint : leaf.node.taints)
    form += fmt::format(" {}={}:{}", taint.key, taint.value, static_cast<int>(taint.effect));
  form += leaf.node.ready && !leaf.node.cordoned ? "" : " out";
  for (const auto& [name, parts] : layout)
    if (const auto here = parts.find(leaf.path); here != parts.end())
      form += fmt::format(" {}:{}", name, here->second);
  return form;
}

// The subtree of all leaves below `prefix`, written so that mirror images read the same.
std::string form_of(const KueueCase& c, const TaskLayout& layout, const DomainPath& prefix) {
  if (prefix.size() == c.levels.size()) return leaf_form(c, *c.find(prefix), layout);
  std::vector<DomainPath> children;
  for (const KueueLeaf& leaf : c.leaves) {
    if (!std::equal(prefix.begin(), prefix.end(), leaf.path.begin())) continue;
    DomainPath child(leaf.path.begin(),
                     leaf.path.begin() + static_cast<std::ptrdiff_t>(prefix.size()) + 1);
    if (std::find(children.begin(), children.end(), child) == children.end())
      children.push_back(child);
  }
  std::vector<std::string> forms;
  for (const DomainPath& child : children) forms.push_back(form_of(c, layout, child));
  std::sort(forms.begin(), forms.end());
  return fmt::format("[{}]", fmt::join(forms, ", "));
}

}  // namespace

std::string illegal(const KueueCase& c, const TaskLayout& layout) {
  for (const Group& group : c.job.groups) {
    const auto parts = layout.find(group.name);
    if (parts == layout.end()) return fmt::format("{} is missing", group.name);
    if (std::string what = bad_group(c, group, parts->second); !what.empty()) return what;
  }
  if (std::string what = split_set(c, layout); !what.empty()) return what;
  return over_capacity(c, layout);
}

bool mirror_images(const KueueCase& c, const TaskLayout& a, const TaskLayout& b) {
  return form_of(c, a, {}) == form_of(c, b, {});
}

std::string describe(const TaskLayout& layout) {
  std::vector<std::string> groups;
  for (const auto& [name, parts] : layout) {
    std::vector<std::string> places;
    for (const auto& [path, tasks] : parts)
      places.push_back(fmt::format("{} x{}", fmt::join(path, "/"), tasks));
    groups.push_back(fmt::format("{}: {}", name, fmt::join(places, ", ")));
  }
  return groups.empty() ? "nothing" : fmt::format("{}", fmt::join(groups, "; "));
}

}  // namespace gs
