// What every Kubernetes object has, and the envelopes that objects come in: watch events and lists.
// Only what is used is kept; unknown fields are stepped over.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "model/node.hpp"
#include "wire/kube/cursor.hpp"

namespace gs::kube {

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct Meta {
  std::string name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  Labels labels;
  Labels annotations;  // without kubectl's copy of the whole object
  std::vector<OwnerReference> owners;
  std::optional<Instant> deleted;  // deletionTimestamp: it is being deleted
  Instant created;
  std::int64_t generation = 0;
  bool operator==(const Meta&) const = default;

  std::string key() const { return ns.empty() ? name : ns + "/" + name; }
  const std::string* annotation(const std::string& name_of) const {
    return find_label(annotations, name_of);
  }
  const std::string* label(const std::string& name_of) const { return find_label(labels, name_of); }
  const OwnerReference* controller() const;  // nullptr: nobody made it
};

void read(Cursor& in, Meta& meta);
void read(Cursor& in, Instant& out);
void read(Cursor& in, std::optional<Instant>& out);

enum class WatchType : std::uint8_t { Added, Modified, Deleted, Bookmark, Error };

struct WatchEvent {
  WatchType type = WatchType::Added;
  std::string_view object;  // its text, inside the text that was decoded
};
Result<WatchEvent> decode_watch_event(std::string_view line);

// A Status object: what an error of the API server says.
struct ApiStatus {
  int code = 0;
  std::string reason;  // "Expired", "Conflict", ...
  std::string message;
  int retry_after_s = 0;
};
Result<ApiStatus> decode_status(std::string_view text);

struct ListMeta {
  std::string resource_version;
  std::string continue_token;  // empty: this was the last page
};
// Calls on_item(text of the object) for each, in order.
Result<ListMeta> decode_list(std::string_view text,
                             const std::function<void(std::string_view)>& on_item);

}  // namespace gs::kube
