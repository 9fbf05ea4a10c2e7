// Follows the objects of one resource: lists them, watches them, and tells a handler every change.
//
// The handler hears of every object as Added, then Modified, then Deleted, in the order in which
// the API server made them; where that order was lost (a watch that is too old), the list is read
// again and the difference is told. Synced follows each complete list. An object that was deleted
// and made again under the same name is Deleted and Added, never Modified.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "drivers/kubernetes/api.hpp"

namespace gs::kube {

struct ReflectorOptions {
  Resource resource;
  std::string name_space;  // empty: all
  std::string label_selector, field_selector;
  bool is_optional = false;           // where it is not served, nothing of it is there
  Duration look_again = seconds(15);  // how soon for what was not served
  int page = 500;
  Duration watch_timeout = minutes(5);  // a watch ends after one to two of these, and is resumed
  Duration stall = seconds(20);         // so much longer without a byte, and it is taken for dead
  Duration first_wait = milliseconds(200), longest_wait = seconds(5);  // between failures
};

struct ObjectChange {
  enum class Kind { Added, Modified, Deleted, Synced };
  Kind kind = Kind::Synced;
  // The object as JSON; empty where its end was only seen by its absence. All views are good during
  // the call only. Objects of lists have no kind and apiVersion.
  std::string_view object;
  std::string_view name_space, name, uid, resource_version;
};

struct ReflectorFigures {
  std::uint64_t lists = 0, watches = 0, failures = 0, events = 0;
  bool is_synced = false;  // a list was complete
  std::string trouble;     // why it could not be read the last time; empty: it could
};

class Reflector {
 public:
  using Handler = std::function<void(const ObjectChange&)>;

  // The handler is called on the Api's loop.
  Reflector(Api& api, ReflectorOptions options, Handler handler);
  ~Reflector();  // as stop()
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start();
  // On the loop: the handler is not called any more. Elsewhere: soon.
  void stop();

  ReflectorFigures figures() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gs::kube
