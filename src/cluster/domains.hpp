// The network tree: spine/leaf, region/block/rack, or any depth. Nodes are its leaves.
//
// Invariants: domain 0 is the root (level -1); every other domain has a parent one level up;
// children are in natural name order (leaf-2 before leaf-10), so neighbours in the list are the
// adjacent domains; so are the nodes of a domain. A node with an incomplete path hangs under the
// root and takes part in no level. A domain without nodes is in nobody's list: the tree depends on
// the nodes that are there, not on those that have been.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"

namespace gs {

struct Domain {
  std::string name;
  DomainId parent;
  int level = -1;
  int position = 0;  // among its siblings; neighbours differ by 1
  std::vector<DomainId> children;
  std::vector<NodeId> nodes;  // of the innermost level (and, at the root, those without a path)
  bool listed = false;        // among its parent's children
};

class DomainTree {
 public:
  DomainTree() { domains_.push_back({}); }

  // Outermost first, without the node level. Only while no node is attached.
  void set_levels(std::vector<std::string> levels) { levels_ = std::move(levels); }
  const std::vector<std::string>& levels() const { return levels_; }
  int depth() const { return static_cast<int>(levels_.size()); }
  // 0 = outermost ... depth() = the node itself ("node", "host" and "kubernetes.io/hostname").
  std::optional<int> level_index(const std::string& name) const;

  static constexpr DomainId root() { return DomainId{0}; }
  DomainId attach(NodeId node, const std::string& name, const std::vector<std::string>& path);
  void detach(NodeId node, DomainId domain);

  const Domain& at(DomainId id) const { return domains_[id.index()]; }
  std::size_t size() const { return domains_.size(); }
  // The domain of `level` above (or at) `domain`; invalid if `domain` lies further out.
  DomainId ancestor(DomainId domain, int level) const;
  bool contains(DomainId outer, DomainId inner) const;
  // Switch hops between two nodes of these innermost domains: 2 in one leaf, 4 one level up, ...
  int hops(DomainId a, DomainId b) const;
  std::vector<DomainId> named(const std::string& name) const;
  std::string path(DomainId id) const;

 private:
  DomainId child(DomainId parent, const std::string& name);
  void list(DomainId id);
  void unlist(DomainId id);

  std::vector<std::string> levels_;
  std::vector<std::string> node_names_;  // by node
  std::vector<Domain> domains_;
  std::unordered_map<std::string, DomainId> by_path_;
};

// "leaf-2" < "leaf-10": runs of digits compare by value.
bool natural_less(const std::string& a, const std::string& b);

}  // namespace gs
