#include "cluster/domains.hpp"

#include <algorithm>
#include <cctype>

#include "base/check.hpp"

namespace gs {

bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t end_a = i;
    std::size_t end_b = j;
    while (end_a < a.size() && digit(a[end_a])) ++end_a;
    while (end_b < b.size() && digit(b[end_b])) ++end_b;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    const int order = a.compare(i, end_a - i, b, j, end_b - j);
    if (order != 0) return order < 0;
    i = end_a, j = end_b;
  }
  if (i < a.size() || j < b.size()) return i >= a.size();
  return a < b;  // "01" and "1": equal by value, ordered by spelling
}

std::optional<int> DomainTree::level_index(const std::string& name) const {
  for (std::size_t i = 0; i < levels_.size(); ++i)
    if (levels_[i] == name) return static_cast<int>(i);
  if (name == "node" || name == "host" || name == "kubernetes.io/hostname") return depth();
  return std::nullopt;
}

DomainId DomainTree::child(DomainId parent, const std::string& name) {
  const std::string key = std::to_string(parent.v) + "/" + name;
  const auto [it, added] = by_path_.emplace(key, DomainId{domains_.size()});
  const DomainId id = it->second;
  if (added) {
    Domain domain;
    domain.name = name;
    domain.parent = parent;
    domain.level = at(parent).level + 1;
    domains_.push_back(std::move(domain));
  }
  if (!at(id).listed) list(id);
  return id;
}

namespace {

void number(std::vector<Domain>& domains, const std::vector<DomainId>& siblings) {
  for (std::size_t i = 0; i < siblings.size(); ++i)
    domains[siblings[i].index()].position = static_cast<int>(i);
}

}  // namespace

void DomainTree::list(DomainId id) {
  auto& siblings = domains_[at(id).parent.index()].children;
  const auto place = std::upper_bound(
      siblings.begin(), siblings.end(), id,
      [&](DomainId a, DomainId b) { return natural_less(at(a).name, at(b).name); });
  siblings.insert(place, id);
  domains_[id.index()].listed = true;
  number(domains_, siblings);
}

void DomainTree::unlist(DomainId id) {
  auto& siblings = domains_[at(id).parent.index()].children;
  siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  domains_[id.index()].listed = false;
  number(domains_, siblings);
}

DomainId DomainTree::attach(NodeId node, const std::string& name,
                            const std::vector<std::string>& path) {
  DomainId domain = root();
  if (!levels_.empty() && path.size() == levels_.size())
    for (const auto& step : path) domain = child(domain, step);
  if (node_names_.size() <= node.index()) node_names_.resize(node.index() + 1);
  node_names_[node.index()] = name;
  auto& nodes = domains_[domain.index()].nodes;
  const auto place = std::upper_bound(nodes.begin(), nodes.end(), node, [&](NodeId a, NodeId b) {
    return natural_less(node_names_[a.index()], node_names_[b.index()]);
  });
  nodes.insert(place, node);
  return domain;
}

void DomainTree::detach(NodeId node, DomainId domain) {
  auto& nodes = domains_[domain.index()].nodes;
  const auto it = std::find(nodes.begin(), nodes.end(), node);
  CHECK(it != nodes.end());
  nodes.erase(it);
  while (domain != root() && at(domain).nodes.empty() && at(domain).children.empty()) {
    unlist(domain);
    domain = at(domain).parent;
  }
}

DomainId DomainTree::ancestor(DomainId domain, int level) const {
  if (at(domain).level < level) return {};
  while (at(domain).level > level) domain = at(domain).parent;
  return domain;
}

bool DomainTree::contains(DomainId outer, DomainId inner) const {
  return ancestor(inner, at(outer).level) == outer;
}

int DomainTree::hops(DomainId a, DomainId b) const {
  int hops = 2;
  while (a != b) {
    const int level = std::max(at(a).level, at(b).level);
    if (at(a).level == level) a = at(a).parent;
    if (at(b).level == level) b = at(b).parent;
    hops += 2;
  }
  return hops;
}

std::vector<DomainId> DomainTree::named(const std::string& name) const {
  std::vector<DomainId> found;
  for (std::size_t i = 1; i < domains_.size(); ++i)
    if (domains_[i].listed && domains_[i].name == name) found.emplace_back(i);
  return found;
}

std::string DomainTree::path(DomainId id) const {
  if (!id.valid() || id == root()) return "cluster";
  const Domain& domain = at(id);
  return domain.parent == root() ? domain.name : path(domain.parent) + "/" + domain.name;
}

}  // namespace gs
