#include "queue/line.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace gs {
namespace {

bool before(const Line::Entry& a, const Line::Entry& b) {
  return a.submitted != b.submitted ? a.submitted < b.submitted : a.seq < b.seq;
}

bool is_tombstone(const Line::Entry& entry) { return !entry.job.valid(); }

}  // namespace

const Line::Entry* Line::after(Instant submitted, std::uint64_t seq) const {
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  auto at = std::upper_bound(begin, entries_.end(), Entry{submitted, seq, {}}, before);
  at = std::find_if_not(at, entries_.end(), is_tombstone);
  return at == entries_.end() ? nullptr : &*at;
}

void Line::join(const Entry& entry) {
  ++size_;
  if (entries_.empty() || entry.submitted > latest_ || before(entries_.back(), entry)) {
    const bool full = entries_.size() == entries_.capacity();
    if (full && std::size_t{size_} * 2 <= entries_.size()) drop_tombstones();
    entries_.push_back(entry);
    latest_ = std::max(latest_, entry.submitted);
    return;
  }
  // Came back after an eviction, or was submitted out of order.
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  const auto at = std::lower_bound(begin, entries_.end(), entry, before);
  if (at != entries_.end() && !before(entry, *at)) {
    CHECK(is_tombstone(*at));
    at->job = entry.job;
  } else {
    insert(at, entry);
  }
}

void Line::insert(Place at, const Entry& entry) {
  const std::ptrdiff_t ahead = at - entries_.begin() - static_cast<std::ptrdiff_t>(head_);
  if (ahead > entries_.end() - at) {
    entries_.insert(at, entry);
    return;
  }
  // Those ahead of it step forward. Where they can't, they get room for many to come.
  if (head_ == 0) {
    head_ = static_cast<std::uint32_t>(entries_.size() / 2 + 1);
    entries_.insert(entries_.begin(), head_, Entry{});
  }
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(head_--);
  std::move(begin, begin + ahead, begin - 1);
  *(begin + ahead - 1) = entry;
}

void Line::leave_front() {
  CHECK(size_ > 0);
  bury(entries_[head_]);
}

void Line::leave(Instant submitted, std::uint64_t seq) {
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  const Entry key{submitted, seq, {}};
  const auto at = std::lower_bound(begin, entries_.end(), key, before);
  CHECK(at != entries_.end() && !before(key, *at) && !is_tombstone(*at));
  bury(*at);
}

void Line::bury(Entry& entry) {
  entry.job = JobId{};
  if (--size_ == 0) {
    entries_.clear();
    head_ = 0;
    return;
  }
  while (is_tombstone(entries_[head_])) ++head_;
  __builtin_prefetch(entries_.data() + head_ + 4);  // a cache line ahead, for those to come
}

void Line::drop_tombstones() {
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
  head_ = 0;
  std::erase_if(entries_, is_tombstone);
}

}  // namespace gs
