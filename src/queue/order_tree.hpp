// OrderTree: jobs of many tenants, handed out one by one, best first (to be served) or last first
// (to be taken from).
//
// One heap of jobs per tenant and one heap of children per inner tenant. Handing out a job can
// change the place of its tenants only, so only those are sifted anew: O(depth x log tenants) a
// job. If what tenants hold changes elsewhere, refresh() rebuilds the heaps.
//
// An inner tenant's own jobs are served before those of the tenants below it, and taken from last.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "queue/order.hpp"

namespace gs {

class OrderTree {
 public:
  enum class Way : std::uint8_t { Serve, TakeFrom };
  struct Head {
    JobId job;
    JobKey key;
    // Serve: what it would add. TakeFrom: what it holds.
    Amounts amounts{};
    std::uint32_t tag = 0;  // the caller's
  };

  OrderTree(const Cluster& cluster, const TenantOrder& tenants, Way way);

  void add(const Head& head);
  bool empty() const { return size_ == 0; }
  Head pop();
  void refresh();

 private:
  struct Node {
    TenantId id;
    int parent = -1;
    std::vector<Head> heads;    // heap
    std::vector<int> children;  // heap; only those with jobs at or below them
    Amounts popped{};           // of its own heads
    bool linked = false;        // is in its parent's heap
    bool dirty = false;
  };
  Node& at(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  int node_for(TenantId id);
  bool own_first(const Node& node) const;
  int leaf_below(int node) const;  // the node whose heads come next
  bool child_before(int a, int b) const;
  bool head_before(const Head& a, const Head& b) const;
  void touch(int node);
  void settle(int node);  // makes the first child really the first
  void unlink_if_empty(int node);
  void heapify(int node);

  const Cluster& cluster_;
  const TenantOrder& tenants_;
  Way way_;
  std::vector<Node> nodes_;  // 0: the root above all top tenants
  std::unordered_map<std::uint32_t, int> node_of_;
  std::size_t size_ = 0;
};

}  // namespace gs
