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
  if (const auto it = node_of_.find(id.v); it != node_of_.end()) return it->second;
  const int parent = node_for(cluster_.tenant(id).parent);
  const int node = static_cast<int>(nodes_.size());
  nodes_.emplace_back();
  at(node).id = id;
  at(node).parent = parent;
  node_of_.emplace(id.v, node);
  return node;
}

bool OrderTree::head_before(const Head& a, const Head& b) const {
  return way_ == Way::Serve ? before(a.key, b.key) : before(b.key, a.key);
}

bool OrderTree::own_first(const Node& node) const {
  if (node.heads.empty()) return false;
  return way_ == Way::Serve || node.children.empty();
}

int OrderTree::leaf_below(int node) const {
  while (!own_first(at(node))) node = at(node).children.front();
  return node;
}

bool OrderTree::child_before(int a, int b) const {
  const Node& leaf_a = at(leaf_below(a));
  const Node& leaf_b = at(leaf_below(b));
  TenantLoad load_a{at(a).id, {}, {}}, load_b{at(b).id, {}, {}};
  if (way_ == Way::Serve) {
    load_a.more = leaf_a.heads.front().amounts;
    load_b.more = leaf_b.heads.front().amounts;
    return tenants_.compare(load_a, load_b) < 0;
  }
  load_a.less = leaf_a.popped + leaf_a.heads.front().amounts;
  load_b.less = leaf_b.popped + leaf_b.heads.front().amounts;
  return tenants_.compare(load_a, load_b) > 0;
}

void OrderTree::touch(int node) {
  for (; node >= 0; node = at(node).parent) at(node).dirty = true;
}

void OrderTree::add(const Head& head) {
  const int node = node_for(cluster_.job(head.job).tenant);
  auto& heads = at(node).heads;
  heads.push_back(head);
  std::push_heap(heads.begin(), heads.end(),
                 [this](const Head& a, const Head& b) { return head_before(b, a); });
  ++size_;
  for (int n = node; n > 0 && !at(n).linked; n = at(n).parent) {
    at(n).linked = true;
    at(at(n).parent).children.push_back(n);  // a dirty heap: settle() puts it in order
    std::push_heap(at(at(n).parent).children.begin(), at(at(n).parent).children.end(),
                   [this](int a, int b) { return child_before(b, a); });
  }
  touch(node);
}

void OrderTree::settle(int node) {
  auto& children = at(node).children;
  const auto worse = [this](int a, int b) { return child_before(b, a); };
  while (!children.empty() && at(children.front()).dirty) {
    const int first = children.front();
    settle(first);
    at(first).dirty = false;
    std::pop_heap(children.begin(), children.end(), worse);
    std::push_heap(children.begin(), children.end(), worse);
  }
}

void OrderTree::unlink_if_empty(int node) {
  for (int n = node; n > 0; n = at(n).parent) {
    if (!at(n).heads.empty() || !at(n).children.empty()) return;
    auto& siblings = at(at(n).parent).children;
    siblings.erase(std::find(siblings.begin(), siblings.end(), n));
    std::make_heap(siblings.begin(), siblings.end(),
                   [this](int a, int b) { return child_before(b, a); });
    at(n).linked = false;
  }
}

OrderTree::Head OrderTree::pop() {
  CHECK(size_ > 0);
  settle(0);
  int node = 0;
  while (!own_first(at(node))) {
    node = at(node).children.front();
    settle(node);
  }
  auto& heads = at(node).heads;
  std::pop_heap(heads.begin(), heads.end(),
                [this](const Head& a, const Head& b) { return head_before(b, a); });
  const Head head = heads.back();
  heads.pop_back();
  --size_;
  at(node).popped = at(node).popped + head.amounts;
  unlink_if_empty(node);
  touch(node);
  return head;
}

void OrderTree::heapify(int node) {
  auto& children = at(node).children;
  for (const int child : children) heapify(child);
  at(node).dirty = false;
  std::make_heap(children.begin(), children.end(),
                 [this](int a, int b) { return child_before(b, a); });
}

void OrderTree::refresh() { heapify(0); }

}  // namespace gs
