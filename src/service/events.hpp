// EventBus: what has happened, for those who watch. The writer publishes; watchers read from where
// they are. Nobody waits for a watcher: the bus keeps the latest kKept events, and who falls behind
// that is told so.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "service/records.hpp"

namespace gs {

class Published {
 public:
  explicit Published(EventRow row) : row_(std::move(row)) {}
  const EventRow& row() const { return row_; }
  // Written when the first watcher asks for it: mostly nobody does.
  const std::string& json() const;

 private:
  EventRow row_;
  mutable std::once_flag written_;
  mutable std::string json_;
};

struct EventFilter {
  std::string tenant;              // only of this one, and of none
  bool of_tenant_only = false;     // not even those of none
  std::int64_t job = 0;            // 0: all
  std::vector<std::string> types;  // what they begin with
};
bool matches(const EventFilter& filter, const EventRow& event);

class EventBus {
 public:
  static constexpr std::size_t kKept = 65'536;

  void publish(std::vector<EventRow> events);
  // Ids up to this one belong to an earlier life of the service: they are recorded, not kept here.
  void begin_after(std::uint64_t id);
  std::uint64_t last() const;        // id of the latest
  std::uint64_t kept_after() const;  // what comes after this one is kept

  struct Page {
    std::vector<std::shared_ptr<const Published>> events;
    std::uint64_t next = 0;  // where to go on
    bool lost = false;       // some between `after` and these are not kept any more
  };
  Page read(std::uint64_t after, const EventFilter& filter, std::size_t at_most) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const Published>> kept_;
  std::uint64_t dropped_ = 0;  // the last one that is not kept any more
  std::uint64_t last_ = 0;
};

// As the streams send it.
std::string event_json(const EventRow& event);

}  // namespace gs
