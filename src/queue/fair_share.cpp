#include "queue/fair_share.hpp"

#include <algorithm>
#include <cmath>

namespace gs {
namespace {

__extension__ typedef __int128 Wide;  // amounts times weights outgrow 64 bits

// GPUs are handed out whole; cores and bytes are fine-grained anyway.
constexpr std::array<std::int64_t, kShareCount> kUnit{kWholeGpu, 1, 1};

struct Sibling {
  TenantId id;
  TenantShare* share = nullptr;
  int priority = 0;
  // Left over by rounding in the last round that cut it, as the fraction num/den.
  Wide remainder_num = 0, remainder_den = 1;
};

std::int64_t requestable(const TenantShare& t, int r) {
  return std::min(t.limit[r], t.requested[r]);
}

bool satisfied(const TenantShare& t, int r) { return requestable(t, r) <= t.fair[r]; }

// CPU and memory are shared evenly: weights speak about GPUs.
std::int64_t plain_weight(const TenantShare& t, int r) { return r == kShareGpu ? t.weight : 1; }

// Weights of this round, history included.
std::vector<std::int64_t> round_weights(const std::vector<Sibling*>& open, int r) {
  std::int64_t sum = 0;
  bool history = false;
  for (const Sibling* s : open) {
    sum += plain_weight(*s->share, r);
    history |= r == kShareGpu && s->share->used_ppm > 0;
  }
  std::vector<std::int64_t> weights;
  weights.reserve(open.size());
  for (const Sibling* s : open) {
    const std::int64_t plain = plain_weight(*s->share, r);
    if (!history || sum == 0) {
      weights.push_back(plain);
      continue;
    }
    const std::int64_t part_ppm = plain * 1'000'000 / sum;
    weights.push_back(plain == 0 ? 0
                                 : std::max<std::int64_t>(0, 2 * part_ppm - s->share->used_ppm));
  }
  return weights;
}

// One round over siblings of one priority. True if another round may still give something.
bool give_round(const std::vector<Sibling*>& siblings, int r, std::int64_t& left) {
  std::vector<Sibling*> open;
  for (Sibling* s : siblings)
    if (!satisfied(*s->share, r)) open.push_back(s);
  const std::vector<std::int64_t> weights = round_weights(open, r);
  Wide sum = 0;
  for (const std::int64_t w : weights) sum += w;
  if (sum == 0) return false;
  bool again = false;
  const std::int64_t amount = left;
  for (std::size_t i = 0; i < open.size() && left > 0; ++i) {
    if (weights[i] == 0) continue;
    TenantShare& t = *open[i]->share;
    const Wide part = Wide{amount} * weights[i];  // over `sum`
    const std::int64_t want = requestable(t, r) - t.fair[r];
    std::int64_t give = want;
    if (Wide{want} * sum <= part) {
      open[i]->remainder_num = 0;
    } else {
      give = static_cast<std::int64_t>(part / (sum * kUnit[r])) * kUnit[r];
      const Wide rest = part - Wide{give} * sum;
      if (rest > 0) open[i]->remainder_num = rest, open[i]->remainder_den = sum;
    }
    if (give == 0) continue;
    t.fair[r] += give;
    left -= give;
    again |= Wide{want} * sum < part;
  }
  return again && left > 0;
}

// What rounding kept back, one unit each, largest remainder first.
void give_remainders(std::vector<Sibling*> siblings, int r, std::int64_t& left) {
  std::erase_if(siblings, [](const Sibling* s) { return s->remainder_num == 0; });
  std::stable_sort(siblings.begin(), siblings.end(), [](const Sibling* a, const Sibling* b) {
    return a->remainder_num * b->remainder_den > b->remainder_num * a->remainder_den;
  });
  for (Sibling* s : siblings) {
    if (left <= 0) return;
    const std::int64_t give = std::min(kUnit[r], left);
    s->share->fair[r] += give;
    left -= give;
  }
}

// Siblings come by created_order and id, so that equal remainders go to who was there first.
void divide_one(std::vector<Sibling>& siblings, int r, std::int64_t total) {
  std::int64_t left = total;
  for (Sibling& s : siblings) {
    TenantShare& t = *s.share;
    t.fair[r] = std::min(std::min(t.guaranteed[r], total), requestable(t, r));
    s.remainder_num = 0;
    left -= t.fair[r];
  }
  if (left <= 0) return;
  std::vector<int> priorities;
  for (const Sibling& s : siblings) priorities.push_back(s.priority);
  std::sort(priorities.begin(), priorities.end(), std::greater<>());
  priorities.erase(std::unique(priorities.begin(), priorities.end()), priorities.end());
  std::vector<std::vector<Sibling*>> levels;
  for (const int priority : priorities) {
    auto& level = levels.emplace_back();
    for (Sibling& s : siblings)
      if (s.priority == priority) level.push_back(&s);
    while (left > 0 && give_round(level, r, left)) {
    }
  }
  for (auto& level : levels) give_remainders(std::move(level), r, left);
}

}  // namespace

std::int64_t TenantShare::allocatable(int resource) const {
  const auto r = static_cast<std::size_t>(resource);
  if (guaranteed[r] >= kUnlimited) return limit[r];
  return std::min(limit[r], std::max(guaranteed[r], fair[r]));
}

void FairShares::divide(const Cluster& cluster, const std::vector<TenantId>& ids,
                        const Amounts& total) {
  if (ids.empty()) return;
  std::vector<Sibling> siblings;
  siblings.reserve(ids.size());
  for (const TenantId id : ids)
    siblings.push_back({id, &shares_[id.index()], cluster.tenant(id).spec.priority, 0, 1});
  for (int r = 0; r < kShareCount; ++r) divide_one(siblings, r, total[static_cast<std::size_t>(r)]);
  for (const TenantId id : ids) {
    const TenantShare& parent = shares_[id.index()];
    Amounts own = parent.requested;
    for (const TenantId child : cluster.tenant(id).children)
      own = own - shares_[child.index()].requested;
    Amounts rest = parent.fair;  // its own jobs come before those of its children
    for (std::size_t r = 0; r < kShareCount; ++r)
      rest[r] -= std::min(rest[r], std::max<std::int64_t>(0, own[r]));
    divide(cluster, cluster.tenant(id).children, rest);
  }
}

namespace {

// What history is measured against: all that was used, but at least half of what could have been.
// So a little use of an idle cluster weighs little.
double hours_that_count(const Cluster& cluster, Duration half_life) {
  double used = 0;
  for (const TenantId id : cluster.top_tenants()) used += cluster.tenant(id).decayed_gpu_hours;
  const double gpus = static_cast<double>(cluster.total().gpu_milli) / kWholeGpu;
  const double could = gpus * half_life.seconds() / 3600.0 / std::log(2.0);
  return std::max(used, could / 2);
}

}  // namespace

void FairShares::compute(const Cluster& cluster, const Input& input) {
  shares_.assign(cluster.tenant_count(), {});
  total_ = amounts(cluster.total());
  const double history_hours = hours_that_count(cluster, input.half_life);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const TenantRecord& record = cluster.tenant(TenantId{i});
    if (record.gone) continue;
    TenantShare& share = shares_[i];
    share.guaranteed = amounts(record.spec.guaranteed);
    share.limit = limits(record.spec.limit);
    share.weight = record.spec.over_quota_weight;
    share.requested = share.requested + amounts(record.used);  // `used` includes all below
    if (history_hours > 0)
      share.used_ppm = static_cast<std::int64_t>(1e6 * record.decayed_gpu_hours / history_hours);
    if (i >= input.waiting.size()) continue;
    for (TenantId up{i}; up.valid(); up = cluster.tenant(up).parent)
      shares_[up.index()].requested = shares_[up.index()].requested + input.waiting[i];
  }
  divide(cluster, cluster.top_tenants(), total_);
}

void decay_usage(Cluster& cluster, Duration half_life, Instant now) {
  for (std::size_t i = 0; i < cluster.tenant_count(); ++i) {
    TenantRecord& record = cluster.tenant(TenantId{i});
    const double elapsed_h = (now - record.decayed_at).seconds() / 3600.0;
    record.decayed_at = now;
    if (elapsed_h <= 0 || half_life.ms <= 0) continue;
    // Constant use g over the interval: h' = h*q + g * (1 - q) * half_life / ln 2.
    const double half_h = half_life.seconds() / 3600.0;
    const double keep = std::exp2(-elapsed_h / half_h);
    const double gpus = static_cast<double>(record.used.gpu_milli) / kWholeGpu;
    record.decayed_gpu_hours =
        record.decayed_gpu_hours * keep + gpus * (1.0 - keep) * half_h / std::log(2.0);
  }
}

}  // namespace gs
