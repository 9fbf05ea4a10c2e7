// Teller: conditions, events and claim statuses, written after everything that matters more.
//
// Of each object only the newest words are kept until they are written; so many writes are under
// way at a time, and not more than so many begin in a second. What waits is bounded by the objects
// that there are: words of pods that wait no more are dropped. While the server can't be reached
// they wait for it, and where it has trouble of its own they are tried a few times; what it refuses
// is dropped: the desk says it again when it changes. News of what went well (a note that is no
// warning) come last, take half of the writes at most, and of very many only the latest are kept;
// after them comes what was said before.
//
// Everything happens on the Api's loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drivers/kubernetes/api.hpp"
#include "drivers/kubernetes/orders.hpp"
#include "wire/kube/encode.hpp"

namespace gs::kube {

struct TellerOptions {
  std::string controller = "gpu-scheduler";  // whom events name
  std::string instance;
  int per_second = 50;
  Duration period = seconds(1);  // another second in tests
  int at_a_time = 8;
  std::size_t most_news = 5'000;
  RetryPolicy retry{seconds(1), minutes(1), 6};  // of what the server failed to do
};

class Teller {
 public:
  using Clock = std::function<Instant()>;

  Teller(Api& api, TellerOptions options, Clock clock);
  ~Teller();
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  void tell(const Tell& words);
  // It waits no more: what was to be said of that is not.
  void retract(const Retract& pod);
  void note(const Note& note);
  void note_about(const ObjectReference& object, bool warning, const std::string& reason,
                  const std::string& message);
  void tell_claim(const TellClaim& status);
  void tell_config(const ObjectReference& object, const ConfigStatus& status);
  void tell_tenant(const TellTenant& status);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
