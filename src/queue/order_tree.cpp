#include "queue/order_tree.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gs {

OrderTree::OrderTree(const Cluster& cluster, const TenantOrder& tenants, Way way)
    : cluster_(cluster), tenants_(tenants), way_(way) {
  nodes_.emplace_back();
}

int OrderTree::node_for(TenantId id) {
  if (!id.valid()) return 0;
  if (node_of_.size() <= id.index()) node_of_.resize(cluster_.tenant_count(), 0);
  if (node_of_[id.index()] != 0) return node_of_[id.index()];
  const int parent = node_for(cluster_.tenant(id).parent);
  const int node = static_cast<int>(nodes_.size());
  nodes_.emplace_back();
  at(node).id = id;
  at(node).parent = parent;
  return node_of_[id.index()] = node;
}

bool OrderTree::own_first(const Node& node) const {
  if (node.heads.empty()) return false;
  return way_ == Way::Serve || node.children.empty();
}

Standing OrderTree::standing_of(int node) const {
  TenantLoad load{at(node).id, {}, {}};
  while (!own_first(at(node))) node = at(node).children.front();
  const Amounts& next = heads_[at(node).heads.front().slot].amounts;
  if (way_ == Way::Serve)
    load.more = next;
  else
    load.less = at(node).popped + next;
  return tenants_.standing(load);
}

std::uint32_t OrderTree::slot_for(const Head& head) {
  if (free_slots_.empty()) {
    heads_.push_back(head);
    return static_cast<std::uint32_t>(heads_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  heads_[slot] = head;
  return slot;
}

void OrderTree::link(int node) {
  for (; node > 0 && !at(node).linked; node = at(node).parent) {
    at(node).linked = true;
    at(at(node).parent).children.append(node);
  }
}

void OrderTree::add(const Head& head, TenantId tenant) {
  const int node = node_for(tenant);
  ++size_;
  const std::int64_t rank = way_ == Way::Serve ? -head.key.key : head.key.key;
  Node& of = at(node);
  if (of.first_gone) {
    const std::uint32_t slot = of.heads.front().slot;
    heads_[slot] = head;
    of.heads.replace_front({rank, slot}, heads_order());
    of.first_gone = false;
    return;
  }
  of.heads.push({rank, slot_for(head)}, heads_order());
  link(node);
  if (node != last_) stale_ = true;
}

void OrderTree::drop_gone() {
  Node& node = at(last_);
  if (!node.first_gone) return;
  node.first_gone = false;
  free_slots_.push_back(node.heads.front().slot);
  node.heads.pop_front(heads_order());
}

void OrderTree::settle() {
  drop_gone();
  for (int node = last_; node > 0; node = at(node).parent) {
    auto& siblings = at(at(node).parent).children;
    if (at(node).heads.empty() && at(node).children.empty()) {
      at(node).linked = false;
      siblings.pop_front(children_order());
    } else if (siblings.size() > 1) {
      at(node).standing = standing_of(node);
      siblings.replace_front(node, children_order());
    }
  }
}

void OrderTree::rebuild(int node) {
  auto& children = at(node).children;
  for (const int child : children) rebuild(child);
  children.drop_if([this](int child) {
    Node& c = at(child);
    c.linked = !c.heads.empty() || !c.children.empty();
    return !c.linked;
  });
  for (const int child : children) at(child).standing = standing_of(child);
  children.rebuild(children_order());
}

const OrderTree::Head& OrderTree::pop() {
  CHECK(size_ > 0);
  if (stale_) {
    drop_gone();
    rebuild(0);
    stale_ = false;
  } else {
    settle();
  }
  int node = 0;
  while (!own_first(at(node))) node = at(node).children.front();
  last_ = node;
  --size_;
  at(node).first_gone = true;
  const Head& head = heads_[at(node).heads.front().slot];
  at(node).popped = at(node).popped + head.amounts;
  return head;
}

}  // namespace gs
