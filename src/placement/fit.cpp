#include "placement/fit.hpp"

#include <algorithm>
#include <array>

#include "placement/devices.hpp"
#include "placement/filters.hpp"
#include "placement/mig.hpp"

namespace gs {
namespace {

int times(std::int64_t free, std::int64_t need, int at_most) {
  if (need <= 0) return at_most;
  return free <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>(free / need, at_most));
}

int whole_slots(const NodeState& node, const Shape& shape, View view, int at_most) {
  const GpuRequest& gpu = shape.request.gpu;
  GpuMask free = node.free_gpus(view);
  if (!shape.models.empty() || gpu.min_memory_mib > 0) free &= eligible_gpus(*node.layout, shape);
  return whole_sets(*node.layout, free, gpu, at_most);
}

// Takes sets away until none is left, just as placing them would; the same one as often as it has
// room, for the choice does not change before one of its GPUs is full.
int connected_parts(const Layout& layout, std::array<int, kMaxGpusPerNode>& parts,
                    const GpuRequest& gpu, int at_most) {
  int fit = 0;
  while (fit < at_most) {
    GpuMask fitting = 0;
    for (int i = 0; i < layout.count; ++i)
      if (parts[static_cast<std::size_t>(i)] > 0) fitting |= gpu_bit(i);
    const GpuMask set = choose_whole(layout, fitting, gpu);
    if (set == 0) break;
    int copies = at_most - fit;
    for_each_gpu(set,
                 [&](int i) { copies = std::min(copies, parts[static_cast<std::size_t>(i)]); });
    for_each_gpu(set, [&](int i) { parts[static_cast<std::size_t>(i)] -= copies; });
    fit += copies;
  }
  return fit;
}

int shared_slots(const NodeState& node, const Shape& shape, View view, int at_most) {
  const GpuRequest& gpu = shape.request.gpu;
  std::array<int, kMaxGpusPerNode> parts{};  // by GPU
  for_each_gpu(node.usable() & eligible_gpus(*node.layout, shape), [&](int i) {
    const auto& books = node.gpus[static_cast<std::size_t>(i)];
    if (books.pinned(view)) return;
    const GpuPart part = gpu_part(gpu, books.memory_mib.capacity);
    if (part.milli > kWholeGpu) return;
    parts[static_cast<std::size_t>(i)] =
        std::min(times(books.milli.free(view), part.milli, at_most),
                 times(books.memory_mib.free(view), part.memory_mib, at_most));
  });
  if (!any_set_will_do(gpu) && gpu.count > 1)
    return connected_parts(*node.layout, parts, gpu, at_most);
  // The most tasks T with sum over devices of min(T, parts) >= T * count.
  const auto enough = [&](int tasks) {
    std::int64_t sum = 0;
    for (const int part : parts) sum += std::min(part, tasks);
    return sum >= std::int64_t{tasks} * gpu.count;
  };
  int low = 0;
  int high = at_most;
  if (gpu.count == 1) {
    std::int64_t sum = 0;
    for (const int part : parts) sum += part;
    return static_cast<int>(std::min<std::int64_t>(sum, at_most));
  }
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (enough(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

int pinned_slots(const NodeState& node, const GpuRequest& gpu, View view) {
  for (const int id : gpu.pinned_ids) {
    const GpuMask bit = gpu_bit(id);
    if ((node.usable() & bit) == 0) return 0;
    const bool free = (node.free_gpus(view) & bit) != 0;
    if (!free && node.gpus[static_cast<std::size_t>(id)].pin_tasks == 0) return 0;
  }
  return kManySlots;  // whose pins those are is the device chooser's question
}

}  // namespace

bool amounts_fit(const NodeState& node, const Shape& shape, View view) {
  const auto fits = [view](const Ledger& ledger, std::int64_t need) {
    return need <= 0 || ledger.free(view) >= need;
  };
  const Resources& need = shape.request.resources;
  return fits(node.cpu_milli, need.cpu_milli) && fits(node.memory_bytes, need.memory_bytes) &&
         std::all_of(shape.named.begin(), shape.named.end(), [&](const auto& named) {
           return named.second <= 0 ||
                  (named.first < node.named.size() && fits(node.named[named.first], named.second));
         });
}

int slots(const Cluster&, const NodeState& node, const Shape& shape, View view, int at_most) {
  const TaskRequest& r = shape.request;
  int fit = times(node.cpu_milli.free(view), r.resources.cpu_milli, at_most);
  fit = times(node.memory_bytes.free(view), r.resources.memory_bytes, fit);
  for (const auto& [id, amount] : shape.named) {
    if (fit == 0) return 0;
    fit = amount <= 0              ? fit
          : id < node.named.size() ? times(node.named[id].free(view), amount, fit)
                                   : 0;
  }
  if (fit == 0) return 0;
  if (!r.gpu.pinned_ids.empty()) return std::min(fit, pinned_slots(node, r.gpu, view));
  if (r.gpu.sharing == Sharing::Mig) return mig_slots(node, shape, view, fit);
  if (r.gpu.count == 0) return fit;
  return shape.exclusive() ? whole_slots(node, shape, view, fit)
                           : shared_slots(node, shape, view, fit);
}

}  // namespace gs
