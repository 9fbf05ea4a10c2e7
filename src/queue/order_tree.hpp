// OrderTree: jobs of many tenants, handed out one by one, best first (to be served) or last first
// (to be taken from).
//
// One heap of jobs per tenant and one heap of children per inner tenant. Handing out a job can
// change the place of its tenants only, and these are the first of their siblings: they are sifted
// down anew before the next job is handed out, O(depth x log tenants). The place of the job itself
// is kept until then for the one that follows it, so taking and adding in turn costs one sift, not
// two. Whatever else changes (jobs of other tenants come, refresh() is called) has all tenants put
// in order anew.
//
// An inner tenant's own jobs are served before those of the tenants below it, and taken from last.
#pragma once

#include <vector>

#include "base/ids.hpp"
#include "queue/order.hpp"
#include "queue/quad_heap.hpp"

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

  void add(const Head& head, TenantId tenant);
  void add(const Head& head) { add(head, cluster_.job(head.job).tenant); }
  bool empty() const { return size_ == 0; }
  // Valid until the next call.
  const Head& pop();
  // What tenants hold has changed elsewhere.
  void refresh() { stale_ = true; }

 private:
  // The rank decides nearly always; only ties look further.
  struct Ranked {
    std::int64_t rank = 0;   // the lower first
    std::uint32_t slot = 0;  // of heads_
  };
  struct Node {
    TenantId id;
    int parent = -1;
    QuadHeap<Ranked> heads;
    QuadHeap<int> children;   // only those with jobs at or below them
    Standing standing;        // among its siblings, if it has any
    Amounts popped{};         // of its own heads
    bool linked = false;      // is in its parent's heap
    bool first_gone = false;  // its first head was handed out, and nobody has taken its place
  };
  Node& at(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  int node_for(TenantId id);
  bool own_first(const Node& node) const;
  Standing standing_of(int node) const;
  std::uint32_t slot_for(const Head& head);
  void link(int node);
  void drop_gone();
  void settle();  // what handing out the last job has changed
  void rebuild(int node);

  auto heads_order() const {
    return [this](const Ranked& a, const Ranked& b) {
      if (a.rank != b.rank) return a.rank < b.rank;
      const JobKey &ka = heads_[a.slot].key, &kb = heads_[b.slot].key;
      return way_ == Way::Serve ? before(ka, kb) : before(kb, ka);
    };
  }
  auto children_order() const {
    return [this](int a, int b) {
      const int c = compare(at(a).standing, at(b).standing);
      return way_ == Way::Serve ? c < 0 : c > 0;
    };
  }

  const Cluster& cluster_;
  const TenantOrder& tenants_;
  Way way_;
  std::vector<Node> nodes_;   // 0: the root above all top tenants
  std::vector<int> node_of_;  // by tenant; 0: none yet
  std::vector<Head> heads_;
  std::vector<std::uint32_t> free_slots_;
  int last_ = 0;        // the node that handed out the last job
  bool stale_ = false;  // no heap of children can be trusted
  std::size_t size_ = 0;
};

}  // namespace gs
