// Store: where turns become durable, and where readers look.
//
// The writer's side belongs to one thread. commit() is all or nothing and durable when it returns;
// a batch that was committed once is not applied twice, however often commit() is called with it:
// `turn` is recorded in the same transaction. A store has one leader at a time; what has been taken
// over by another answers Conflict for ever.
// Reader is safe to use from many threads; it sees every turn that was committed before the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "service/records.hpp"

namespace gs {

struct Batch {
  std::uint64_t turn = 0;
  std::vector<JobRow> added;
  std::vector<JobRow> changed;     // what can change of a row, by seq; applied after `added`
  std::vector<TenantRow> tenants;  // new or changed
  std::vector<NodeRow> nodes;      // new or changed
  std::vector<std::string> removed_nodes;  // these go before `nodes` come
  std::vector<EventRow> events;
  std::vector<UsageRow> usage;
  std::vector<KeyRow> keys;

  bool empty() const {
    return added.empty() && changed.empty() && tenants.empty() && nodes.empty() &&
           removed_nodes.empty() && events.empty() && usage.empty() && keys.empty();
  }
};

// What a start needs. History stays where it is.
struct Loaded {
  std::uint64_t turn = 0;     // the last one committed
  std::int64_t last_seq = 0;  // no id up to this one may be given out again
  std::uint64_t last_event = 0;
  std::vector<TenantRow> tenants;  // the inactive ones too
  std::vector<NodeRow> nodes;
  std::vector<JobRow> jobs;  // those that have not ended, by seq
};

// How long what is over is kept. Zero: for ever.
struct Retention {
  Duration jobs, events, keys;
};

class Store {
 public:
  virtual ~Store() = default;

  // Becomes the leader if nobody is; false: somebody else is. May be called again and again.
  virtual Result<bool> try_lead() = 0;
  // Still the leader; to be called more often than every 2 s. Conflict: not any more.
  virtual Status renew() = 0;

  // --- leader only ---
  virtual Result<Loaded> load() = 0;
  // Unavailable: the database is out of reach, call again. Conflict: another one leads.
  virtual Status commit(const Batch& batch) = 0;
  virtual Result<std::optional<KeyRow>> find_key(const std::string& tenant,
                                                 const std::string& key) = 0;
  // A row that has ended, to start it over. Live ones the caller knows.
  virtual Result<std::optional<JobRow>> find_job(std::int64_t seq) = 0;
  // Deletes some of what is older; returns how many rows went. To be called until it returns 0.
  virtual Result<std::int64_t> forget(const Retention& retention, Instant now) = 0;
};

// Submitted is the order of seq, which grows with time; ties of the others end in seq too.
enum class JobSort : std::uint8_t { Submitted, Priority, Name };

struct JobQuery {
  std::string tenant;  // empty: all
  std::vector<RunState> states;
  std::string name;  // exactly; with a '*' at the end: what begins so
  Labels labels;     // all of them
  std::string array_id;
  JobSort sort = JobSort::Submitted;
  bool descending = true;
  std::string cursor;  // as a page before gave it
  int limit = 50;
  std::int64_t offset = 0;
};

struct JobPage {
  std::vector<JobRow> jobs;
  std::string next_cursor;  // empty: that was all
  std::int64_t total = 0;   // that match; counted up to kCountLimit
  bool total_is_exact = true;
};
inline constexpr std::int64_t kCountLimit = 10'000;

struct EventQuery {
  std::uint64_t after = 0;
  std::int64_t job = 0;  // 0: all
  std::string tenant;
  std::string type;  // exactly, or what begins so with a '*' at the end
  int limit = 100;
};

struct UsageQuery {
  std::string tenant;  // empty: all
  Instant from, to;    // hours that begin in [from, to)
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual Result<std::optional<JobRow>> job(std::int64_t seq) = 0;
  virtual Result<JobPage> jobs(const JobQuery& query) = 0;
  virtual Result<std::optional<TenantRow>> tenant(std::int64_t seq) = 0;
  virtual Result<std::vector<TenantRow>> tenants() = 0;  // active ones, oldest first
  virtual Result<std::vector<NodeRow>> nodes() = 0;      // by name
  virtual Result<std::vector<EventRow>> events(const EventQuery& query) = 0;
  virtual Result<std::vector<UsageRow>> usage(const UsageQuery& query) = 0;
  virtual Status ping() = 0;
};

}  // namespace gs
