// consolidate: what is movable moves together, so that a waiting job fits in one piece.
#include "cycle/make_room.hpp"
#include "cycle/room_phase.hpp"

namespace gs {
namespace {

// Plans that one cycle may simulate. With many unlike jobs waiting, each search is in vain most of
// the time and each cycle would repeat them all; jobs further back have to wait until those in
// front of them have gone or their search has become short.
constexpr int kMaxPlans = 512;

}  // namespace

void run_consolidate(CycleContext& context) {
  RoomPhase phase(context, {true});
  for (JobId job = phase.next(); job.valid() && phase.simulations() < kMaxPlans;
       job = phase.next()) {
    RoomAsk ask{job, next_members(context.cluster, job, nullptr), {}, true};
    if (!phase.enough_free_gpus(job, ask.members)) continue;
    const int max_moves = context.config.max_moves;
    ask.verdict = [max_moves](std::size_t, const Simulation& simulation) {
      return simulation.lost().empty() && (max_moves <= 0 || simulation.moved() <= max_moves);
    };
    phase.make_room(ask,
                    {job, [](TenantId) { return true; }, std::numeric_limits<int>::max(), true});
  }
}

}  // namespace gs
