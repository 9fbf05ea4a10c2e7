// QuadHeap: a heap with four children per item. It has half the levels of a binary one, and the
// children of an item lie side by side, in one or two cache lines if items are small: sifting down,
// which is what a queue does all day, costs little more than looking at each level once.
//
// Invariant: no item comes before its parent, unless append() was called after the last rebuild().
// Every call gets the order, `before(a, b)`: a strict one, and the same each time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace gs {

template <typename T>
class QuadHeap {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  const T& front() const { return items_.front(); }

  template <typename Before>
  void push(T item, Before before) {
    std::size_t hole = items_.size();
    items_.push_back(item);
    while (hole > 0 && before(item, items_[(hole - 1) / kArity])) {
      items_[hole] = items_[(hole - 1) / kArity];
      hole = (hole - 1) / kArity;
    }
    items_[hole] = std::move(item);
  }

  // Cheaper than to pop and push, the more so if the new item stays near the front.
  template <typename Before>
  void replace_front(T item, Before before) {
    sift_down(0, std::move(item), before);
  }

  template <typename Before>
  void pop_front(Before before) {
    T last = std::move(items_.back());
    items_.pop_back();
    if (!items_.empty()) sift_down(0, std::move(last), before);
  }

  // Many at once: append or drop, in no order, then rebuild.
  void append(T item) { items_.push_back(std::move(item)); }
  template <typename Drop>
  void drop_if(Drop drop) {
    std::erase_if(items_, drop);
  }
  template <typename Before>
  void rebuild(Before before) {
    if (items_.size() < 2) return;
    for (std::size_t i = (items_.size() - 2) / kArity + 1; i-- > 0;)
      sift_down(i, items_[i], before);
  }

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  static constexpr std::size_t kArity = 4;

  // Puts `item` into the hole or below it.
  template <typename Before>
  void sift_down(std::size_t hole, T item, Before before) {
    for (;;) {
      const std::size_t first = hole * kArity + 1;
      if (first >= items_.size()) break;
      std::size_t best = first;
      const std::size_t end = std::min(first + kArity, items_.size());
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(items_[child], items_[best])) best = child;
      if (!before(items_[best], item)) break;
      items_[hole] = std::move(items_[best]);
      hole = best;
    }
    items_[hole] = std::move(item);
  }

  std::vector<T> items_;
};

}  // namespace gs
