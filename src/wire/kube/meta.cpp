#include "wire/kube/meta.hpp"

#include <algorithm>
#include <utility>

#include "wire/clock_json.hpp"

namespace gs::kube {
namespace {

constexpr std::pair<std::string_view, WatchType> kTypes[] = {{"ADDED", WatchType::Added},
                                                             {"MODIFIED", WatchType::Modified},
                                                             {"DELETED", WatchType::Deleted},
                                                             {"BOOKMARK", WatchType::Bookmark},
                                                             {"ERROR", WatchType::Error}};
constexpr const char* kAppliedCopy = "kubectl.kubernetes.io/last-applied-configuration";

void read_owner(Cursor& in, OwnerReference& owner) {
  in.object([&](std::string_view field) {
    if (field == "apiVersion") in.read(owner.api_version);
    if (field == "kind") in.read(owner.kind);
    if (field == "name") in.read(owner.name);
    if (field == "uid") in.read(owner.uid);
    if (field == "controller") in.read(owner.controller);
  });
}

}  // namespace

const OwnerReference* Meta::controller() const {
  const auto it = std::find_if(owners.begin(), owners.end(),
                               [](const OwnerReference& owner) { return owner.controller; });
  return it == owners.end() ? nullptr : &*it;
}

void read(Cursor& in, Instant& out) {
  std::string text;
  in.read(text);
  if (in.failed() || text.empty()) return;
  const std::optional<Instant> time = parse_time(text);
  if (!time) return in.fail("must be a time such as 2026-01-31T12:00:00Z, got '" + text + "'");
  out = *time;
}

void read(Cursor& in, std::optional<Instant>& out) {
  if (in.next() == 'n') return in.skip();
  read(in, out.emplace());
}

void read(Cursor& in, Meta& meta) {
  in.object([&](std::string_view field) {
    if (field == "name")
      in.read(meta.name);
    else if (field == "namespace")
      in.read(meta.ns);
    else if (field == "uid")
      in.read(meta.uid);
    else if (field == "resourceVersion")
      in.read(meta.resource_version);
    else if (field == "labels")
      in.read(meta.labels);
    else if (field == "annotations")
      in.read(meta.annotations);
    else if (field == "ownerReferences")
      in.array([&] { read_owner(in, meta.owners.emplace_back()); });
    else if (field == "deletionTimestamp")
      read(in, meta.deleted);
    else if (field == "creationTimestamp")
      read(in, meta.created);
    else if (field == "generation")
      in.read(meta.generation);
  });
  std::erase_if(meta.annotations, [](const auto& pair) { return pair.first == kAppliedCopy; });
}

Result<WatchEvent> decode_watch_event(std::string_view line) {
  WatchEvent event;
  std::string type;
  Cursor in(line);
  in.object([&](std::string_view field) {
    if (field == "type") in.read(type);
    if (field == "object") event.object = in.raw();
  });
  if (const Status status = in.finish(); !status) return status.error();
  const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const auto& pair) { return pair.first == type; });
  if (known == std::end(kTypes)) return invalid("a watch event of unknown type '" + type + "'");
  if (event.object.empty()) return invalid("a watch event without an object");
  event.type = known->second;
  return event;
}

Result<ApiStatus> decode_status(std::string_view text) {
  ApiStatus status;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "code") in.read(status.code);
    if (field == "reason") in.read(status.reason);
    if (field == "message") in.read(status.message);
    if (field == "details")
      in.object([&](std::string_view detail) {
        if (detail == "retryAfterSeconds") in.read(status.retry_after_s);
      });
  });
  if (const Status done = in.finish(); !done) return done.error();
  return status;
}

Result<ListMeta> decode_list(std::string_view text,
                             const std::function<void(std::string_view)>& on_item) {
  ListMeta meta;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata")
      in.object([&](std::string_view inner) {
        if (inner == "resourceVersion") in.read(meta.resource_version);
        if (inner == "continue") in.read(meta.continue_token);
      });
    if (field == "items")
      in.array([&] {
        const std::string_view item = in.raw();
        if (!in.failed()) on_item(item);
      });
  });
  if (const Status status = in.finish(); !status) return status.error();
  return meta;
}

}  // namespace gs::kube
