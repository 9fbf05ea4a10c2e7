#include "model/why.hpp"

#include "model/effect.hpp"

namespace gs {

const char* to_string(Constraint constraint) {
  switch (constraint) {
    case Constraint::None:
      return "none";
    case Constraint::Capacity:
      return "capacity";
    case Constraint::GpuModel:
      return "gpu-model";
    case Constraint::GpuMemory:
      return "gpu-memory";
    case Constraint::Mig:
      return "mig";
    case Constraint::Devices:
      return "devices";
    case Constraint::Bandwidth:
      return "bandwidth";
    case Constraint::Selector:
      return "selector";
    case Constraint::Affinity:
      return "affinity";
    case Constraint::Taint:
      return "taint";
    case Constraint::NodeNotReady:
      return "node-not-ready";
    case Constraint::NodeName:
      return "node-name";
    case Constraint::Fabric:
      return "fabric";
    case Constraint::Network:
      return "network";
    case Constraint::Topology:
      return "topology";
    case Constraint::LeafLimit:
      return "leaf-limit";
    case Constraint::Quota:
      return "quota";
    case Constraint::FairShare:
      return "fair-share";
    case Constraint::QueueFull:
      return "queue-full";
    case Constraint::GangIncomplete:
      return "gang-incomplete";
    case Constraint::Held:
      return "held";
    case Constraint::Reservation:
      return "reservation";
    case Constraint::Order:
      return "order";
    case Constraint::Timeout:
      return "timeout";
    case Constraint::Evicted:
      return "evicted";
    case Constraint::Invalid:
      return "invalid";
  }
  return "?";
}

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::Preempted:
      return "preempted";
    case StopReason::Reclaimed:
      return "reclaimed";
    case StopReason::Moved:
      return "moved";
    case StopReason::Shrunk:
      return "shrunk";
    case StopReason::Unhealthy:
      return "unhealthy";
    case StopReason::Drained:
      return "drained";
    case StopReason::Cancelled:
      return "cancelled";
    case StopReason::TimeLimit:
      return "time-limit";
    case StopReason::GangBroken:
      return "gang-broken";
  }
  return "?";
}

}  // namespace gs
