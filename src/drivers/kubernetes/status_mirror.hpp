// The status of an object as the API server shows it, and as it will when our last word has
// arrived. Says whether something has to be written, so that a status is true whoever wrote it
// last, and our own words, which come back to us late, are not taken for somebody else's.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/time.hpp"

namespace gs::kube {

template <typename Status>
class StatusMirror {
 public:
  // So long a word of ours is believed to be under way.
  static constexpr Duration kUnderWay = seconds(5);

  bool is_known() const { return !uid_.empty(); }  // there is such an object
  const std::string& uid() const { return uid_; }
  void forget() { *this = {}; }

  // Another uid is another object, which has heard nothing of us.
  void seen(const std::string& uid, Status status) {
    if (uid != uid_) told_.reset();
    uid_ = uid;
    shown_ = std::move(status);
    if (told_ && *told_ == shown_) told_.reset();
  }

  const Status& expected(Instant now) const {
    return told_ && now < told_at_ + kUnderWay ? *told_ : shown_;
  }
  void tell(Status status, Instant now) {
    told_ = std::move(status);
    told_at_ = now;
  }
  // When to look again after seen(): a word of ours is under way that does not show yet.
  std::optional<Instant> look_again() const {
    return told_ ? std::optional(told_at_ + kUnderWay) : std::nullopt;
  }

 private:
  std::string uid_;
  Status shown_;
  std::optional<Status> told_;  // and not seen since
  Instant told_at_;
};

}  // namespace gs::kube
