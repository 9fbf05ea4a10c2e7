// Leader election by a Lease: of all that run for it, at most one leads at any time.
//
// Others count as alive as long as their lease keeps changing, by our own clock that never jumps:
// what their clocks say does not matter. A leader that could not renew within the deadline stops
// leading before anybody else can begin, because the deadline is shorter than the lease.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "drivers/kubernetes/api.hpp"

namespace gs::kube {

struct ElectorOptions {
  std::string name_space, name;  // of the Lease
  std::string identity;          // unique: the pod's name and something random
  Duration lease = seconds(7);   // others wait so long after the last sign of life
  Duration renew_deadline = milliseconds(4500);
  Duration retry = milliseconds(1200);
};

class Elector {
 public:
  struct Callbacks {
    std::function<void()> gained;
    std::function<void(const std::string& why)> lost;
  };

  // Callbacks come on the Api's loop. Wrong options (deadlines that overlap) are a bug.
  Elector(Api& api, ElectorOptions options, Callbacks callbacks);
  ~Elector();  // without giving the lease back: others wait until it is over
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  void start();
  // Gives the lease back, if it is ours, so that another one need not wait. `done` is called on the
  // loop when that is over; lost() is called before if we led.
  void stop(std::function<void()> done);

  // From any thread. False from the moment on at which somebody else might lead.
  bool is_leader() const;
  // Who leads, as far as we know; empty: nobody.
  std::string leader() const;
  // Why the lease could not be read or written the last time; empty: it could.
  std::string trouble() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
