#include "queue/quad_heap.hpp"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace gs {
namespace {

TEST(QuadHeap, FrontIsAlwaysTheFirst) {
  Rng rng(7);
  QuadHeap<std::uint64_t> heap;
  std::multiset<std::uint64_t> plain;
  const std::less<> before;
  for (int step = 0; step < 5000; ++step) {
    const std::uint64_t item = rng.below(500);
    const std::uint64_t what = rng.below(plain.empty() ? 1 : 10);
    if (what < 4) {
      heap.push(item, before);
      plain.insert(item);
    } else if (what < 9) {
      plain.erase(plain.begin());
      if (what < 7) {
        heap.replace_front(item, before);
        plain.insert(item);
      } else {
        heap.pop_front(before);
      }
    } else {
      heap.append(item);
      plain.insert(item);
      heap.drop_if([&](std::uint64_t one) { return one % 50 == item % 50; });
      std::erase_if(plain, [&](std::uint64_t one) { return one % 50 == item % 50; });
      heap.rebuild(before);
    }
    ASSERT_EQ(heap.size(), plain.size());
    if (plain.empty()) continue;
    ASSERT_EQ(heap.front(), *plain.begin());
  }
}

}  // namespace
}  // namespace gs
