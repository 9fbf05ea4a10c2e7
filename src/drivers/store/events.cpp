#include "drivers/store/events.hpp"

#include <algorithm>
#include <string>

#include "drivers/store/job_list.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

// The types that begin with `prefix`. There are few, so each is found by a step in the index.
Result<std::vector<std::string>> types_from(Session& session, const std::string& prefix) {
  std::vector<std::string> types;
  std::string last = prefix;
  const std::string end = end_of_prefix(prefix);
  for (const char* compare = ">="; compare != nullptr; compare = types.empty() ? nullptr : ">") {
    std::vector<std::string> next;
    const Status status =
        session.query(std::string("SELECT type FROM events WHERE type ") + compare +
                          " $1 AND type < $2 ORDER BY type LIMIT 1",
                      {last, end}, [&](const Row& row) { next.emplace_back(row.text(0)); });
    if (!status) return status.error();
    if (next.empty()) break;
    last = next[0];
    types.push_back(std::move(next[0]));
  }
  return types;
}

class EventSql {
 public:
  EventSql(Session& session, const EventQuery& query)
      : dialect_(session.dialect()), query_(query) {}

  std::string bind(Value value) {
    values.push_back(std::move(value));
    return '$' + std::to_string(values.size());
  }

  // The events of one type, or with `type` empty of all.
  void branch(const std::string& type) {
    const char* index = query_.job != 0          ? "events_by_job"
                        : !query_.tenant.empty() ? "events_by_tenant"
                        : !type.empty()          ? "events_by_type"
                                                 : nullptr;
    text += "SELECT " + names_of(event_columns()) + " FROM events" +
            (index == nullptr ? "" : indexed_by(dialect_, index)) + " WHERE id > " +
            bind(static_cast<std::int64_t>(query_.after));
    if (query_.job != 0) text += " AND job <> 0 AND job = " + bind(query_.job);
    if (!query_.tenant.empty()) text += " AND tenant <> '' AND tenant = " + bind(query_.tenant);
    if (!type.empty()) text += " AND type = " + bind(type);
  }

  std::string text;
  std::vector<Value> values;

 private:
  Dialect dialect_;
  const EventQuery& query_;
};

}  // namespace

Result<std::vector<EventRow>> list_events(Session& session, const EventQuery& query) {
  EventSql sql(session, query);
  const bool is_prefix = query.type.ends_with('*');
  const std::string prefix = is_prefix ? query.type.substr(0, query.type.size() - 1) : "";
  if (prefix.empty()) {
    sql.branch(is_prefix ? "" : query.type);
  } else if (query.job != 0 || !query.tenant.empty()) {
    sql.branch("");
    sql.text += " AND type >= " + sql.bind(prefix);
    sql.text += " AND type < " + sql.bind(end_of_prefix(prefix));
  } else {
    const Result<std::vector<std::string>> types = types_from(session, prefix);
    if (!types) return types.error();
    if (types->empty()) return std::vector<EventRow>();
    for (const std::string& type : *types) {
      if (&type != &types->front()) sql.text += " UNION ALL ";
      sql.branch(type);
    }
  }
  sql.text += " ORDER BY id LIMIT " + sql.bind(std::int64_t{std::max(query.limit, 1)});
  return select<EventRow>(session, sql.text, sql.values, read_event);
}

}  // namespace gs::store
