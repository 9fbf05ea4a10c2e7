#include "service/events.hpp"

#include <algorithm>

#include "wire/clock_json.hpp"
#include "wire/json_reader.hpp"

namespace gs {

std::string event_json(const EventRow& event) {
  Json json{{"id", event.id}, {"time", time_text(event.time)}, {"type", event.type}};
  if (event.job != 0) json["job_id"] = job_id(event.job);
  if (!event.tenant.empty()) json["tenant_id"] = event.tenant;
  if (!event.node.empty()) json["node"] = event.node;
  if (!event.message.empty()) json["message"] = event.message;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const std::string& Published::json() const {
  std::call_once(written_, [this] { json_ = event_json(row_); });
  return json_;
}

bool matches(const EventFilter& filter, const EventRow& event) {
  if (!filter.tenant.empty() && event.tenant != filter.tenant &&
      (filter.of_tenant_only || !event.tenant.empty()))
    return false;
  if (filter.job != 0 && event.job != filter.job) return false;
  return filter.types.empty() ||
         std::any_of(filter.types.begin(), filter.types.end(),
                     [&](const std::string& type) { return event.type.starts_with(type); });
}

void EventBus::publish(std::vector<EventRow> events) {
  if (events.empty()) return;
  std::vector<std::shared_ptr<const Published>> fresh;
  fresh.reserve(events.size());
  for (EventRow& row : events) fresh.push_back(std::make_shared<const Published>(std::move(row)));
  const std::lock_guard lock(mutex_);
  for (auto& event : fresh) kept_.push_back(std::move(event));
  last_ = kept_.back()->row().id;
  while (kept_.size() > kKept) {
    dropped_ = kept_.front()->row().id;
    kept_.pop_front();
  }
}

void EventBus::begin_after(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (id <= last_) return;  // nothing has happened since it was published
  kept_.clear();
  dropped_ = last_ = id;
}

std::uint64_t EventBus::kept_after() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::uint64_t EventBus::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

EventBus::Page EventBus::read(std::uint64_t after, const EventFilter& filter,
                              std::size_t at_most) const {
  Page page;
  const std::lock_guard lock(mutex_);
  page.next = after;
  page.lost = after < dropped_;
  auto at =
      std::upper_bound(kept_.begin(), kept_.end(), after,
                       [](std::uint64_t id, const auto& event) { return id < event->row().id; });
  for (; at != kept_.end() && page.events.size() < at_most; ++at) {
    page.next = (*at)->row().id;
    if (matches(filter, (*at)->row())) page.events.push_back(*at);
  }
  return page;
}

}  // namespace gs
