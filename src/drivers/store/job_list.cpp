#include "drivers/store/job_list.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "drivers/store/cursor.hpp"
#include "drivers/store/job_filter.hpp"
#include "drivers/store/tables.hpp"

namespace gs::store {
namespace {

constexpr std::int64_t kSortLimit = 50'000;  // rows that are rather sorted than looked for
constexpr std::int64_t kSortGladly = 2'000;  // rows that are sorted without looking further
constexpr std::int64_t kShortWalk = 5'000;   // rows

class JobList {
 public:
  JobList(Session& session, const JobQuery& query, std::vector<std::string>* statements)
      : session_(session),
        query_(query),
        filter_(query, session.dialect()),
        statements_(statements),
        limit_(std::max(query.limit, 1)) {}

  Result<JobPage> page() {
    if (!query_.cursor.empty()) {
      Result<Cursor> cursor = decode_cursor(query_.cursor, query_.sort, query_.descending);
      if (!cursor) return cursor.error();
      cursor_ = std::move(*cursor);
    }
    const Result<Way> way = choose();
    if (!way) return way.error();
    Result<std::vector<JobRow>> found = rows(*way);
    if (!found) return found.error();
    JobPage page;
    page.jobs = std::move(*found);
    if (static_cast<std::int64_t>(page.jobs.size()) > limit_) {
      page.jobs.pop_back();
      page.next_cursor = encode(cursor_at(page.jobs.back()));
    }
    const Result<std::int64_t> total = count(*way, page);
    if (!total) return total.error();
    page.total = std::min(*total, kCountLimit);
    page.total_is_exact = *total <= kCountLimit;
    return page;
  }

 private:
  bool by_seq() const { return query_.sort == JobSort::Submitted; }
  bool is_ordered(const Way& way) const {
    if (by_seq())
      return way.by != By::Priority && !(way.by == By::Name && filter_.is_name_prefix());
    return way.by == (query_.sort == JobSort::Name ? By::Name : By::Priority);
  }
  Way along_the_order() const {
    if (by_seq()) return {By::Seq};
    return {query_.sort == JobSort::Name ? By::Name : By::Priority};
  }

  // The filter that lets the fewest through. Where there is only one, what is counted is told as
  // the total; more than that is counted only if the walk along the order does not end the search.
  Result<Way> choose() {
    std::vector<Way> ways = filter_.ways();
    if (ways.empty()) return along_the_order();
    for (Way& way : ways) {
      const Result<std::int64_t> size = size_of(way, ways.size() == 1 ? kCountLimit : kSortLimit);
      if (!size) return size.error();
      way.size = *size;
    }
    return *std::min_element(ways.begin(), ways.end(),
                             [](const Way& a, const Way& b) { return a.size < b.size; });
  }

  // Up to one more than the limit.
  Result<std::int64_t> size_of(const Way& way, std::int64_t limit) {
    const Branch branch = filter_.branches(way, false)[0];
    Sql sql;
    sql << "SELECT count(*) FROM (SELECT 1 AS n FROM " << branch.source << " WHERE ";
    filter_.own_condition(sql, way, branch);
    sql << " LIMIT ";
    sql.bind(limit + 1) << ") found";
    return number(sql);
  }

  // The order's own index tells these states apart.
  bool order_finds(const Way& way) const {
    return query_.sort == JobSort::Priority && way.by == By::State && filter_.ways().size() == 1 &&
           filter_.only_ended();
  }

  Result<std::vector<JobRow>> rows(const Way& way) {
    if (order_finds(way)) return read(page_of(along_the_order()));
    if (is_ordered(way) || way.size <= kSortGladly) return read(page_of(way));
    Result<std::vector<JobRow>> found = read(short_walk());
    if (!found || static_cast<std::int64_t>(found->size()) > limit_) return found;
    const bool is_known = filter_.ways().size() > 1 || way.size <= kCountLimit;
    const Result<std::int64_t> size = is_known ? way.size : size_of(way, kSortLimit);
    if (!size) return size.error();
    return read(page_of(*size <= kSortLimit ? way : along_the_order()));
  }

  // The label's own number, where it leads: so its index gives the order.
  const char* seq_of(const Way& way) const { return way.by == By::Label ? "l.seq" : "j.seq"; }
  std::string key_of(const Way& way) const {
    if (by_seq()) return seq_of(way);
    return query_.sort == JobSort::Name ? "j.name" : "j.priority";
  }
  // A label alone needs no job, unless the order does.
  bool joins_job(const Way& way) const {
    return way.by == By::Label && (!by_seq() || filter_.ways().size() > 1);
  }
  std::string direction() const { return query_.descending ? " DESC" : " ASC"; }

  void from(Sql& sql, const Way& way, const Branch& branch, bool all_filters) const {
    sql << " FROM " << branch.source << (joins_job(way) ? " CROSS JOIN jobs j" : "") << " WHERE ";
    filter_.own_condition(sql, way, branch);
    if (all_filters) filter_.other_conditions(sql, way);
    if (joins_job(way)) sql << " AND j.seq = l.seq";
  }

  void after_cursor(Sql& sql, const Way& way) const {
    if (query_.cursor.empty()) return;
    const char* compare = query_.descending ? " < " : " > ";
    if (by_seq()) {
      sql << " AND " << seq_of(way) << compare;
      sql.bind(cursor_.seq);
      return;
    }
    sql << " AND (" << key_of(way) << ", j.seq)" << compare << "(";
    if (query_.sort == JobSort::Name) {
      sql.bind(cursor_.key);
    } else {
      std::int64_t priority = 0;
      std::from_chars(cursor_.key.data(), cursor_.key.data() + cursor_.key.size(), priority);
      sql.bind(priority);
    }
    sql << ", ";
    sql.bind(cursor_.seq) << ")";
  }

  void order(Sql& sql, const std::string& key, const std::string& seq) const {
    sql << " ORDER BY " << key << direction();
    if (!by_seq()) sql << ", " << seq << direction();
  }

  // Numbers and keys of the way's rows behind the cursor, in order; the database merges branches.
  // No more than `most` are wanted: PostgreSQL has to be told so for each branch, or it sorts all.
  void keys(Sql& sql, const Way& way, bool all_filters, std::int64_t most) const {
    const std::vector<Branch> branches = filter_.branches(way, is_ordered(way));
    const bool single = branches.size() == 1;
    const bool apart = !single && session_.dialect() == Dialect::Postgres;
    // What has to be sorted is found first: PostgreSQL would rather walk along the order and hope.
    const bool first = !is_ordered(way) && session_.dialect() == Dialect::Postgres;
    if (first) sql << "WITH found AS MATERIALIZED (";
    for (std::size_t i = 0; i < branches.size(); ++i) {
      sql << (i == 0 ? "" : " UNION ALL ") << (apart ? "(" : "") << "SELECT " << seq_of(way)
          << " AS s, " << key_of(way) << " AS k";
      from(sql, way, branches[i], all_filters);
      after_cursor(sql, way);
      if (!apart) continue;
      order(sql, key_of(way), seq_of(way));
      sql << " LIMIT ";
      sql.bind(most) << ")";
    }
    if (first) sql << ") SELECT s, k FROM found";
    // A single one is ordered by its own columns, which an index may have in this order.
    const bool own = single && !first;
    order(sql, own ? key_of(way) : "k", own ? seq_of(way) : "s");
  }

  void limit(Sql& sql) const {
    sql << " LIMIT ";
    sql.bind(limit_ + 1) << " OFFSET ";
    sql.bind(std::max<std::int64_t>(query_.offset, 0));
  }

  Sql page_of(const Way& way) const {
    Sql sql;
    sql << "SELECT " << names_of(job_columns(), "j.") << " FROM (";
    keys(sql, way, true, limit_ + 1 + std::max<std::int64_t>(query_.offset, 0));
    limit(sql);
    sql << ") page CROSS JOIN jobs j WHERE j.seq = page.s ORDER BY page.k" << direction()
        << ", page.s" << direction();
    return sql;
  }

  Sql short_walk() const {
    const Way way = along_the_order();
    Sql sql;
    sql << "SELECT " << names_of(job_columns(), "j.") << " FROM (";
    keys(sql, way, false, kShortWalk);
    sql << " LIMIT ";
    sql.bind(kShortWalk) << ") page CROSS JOIN jobs j WHERE j.seq = page.s";
    filter_.other_conditions(sql, way);
    sql << " ORDER BY page.k" << direction() << ", page.s" << direction();
    limit(sql);
    return sql;
  }

  Cursor cursor_at(const JobRow& job) const {
    Cursor cursor{query_.sort, query_.descending, job.seq, {}};
    if (query_.sort == JobSort::Name) cursor.key = job.name;
    if (query_.sort == JobSort::Priority) cursor.key = std::to_string(job.priority);
    return cursor;
  }

  // Up to kCountLimit + 1.
  Result<std::int64_t> count(const Way& way, const JobPage& page) {
    if (filter_.ways().size() == 1) return way.size;
    if (page.next_cursor.empty() && query_.cursor.empty() && query_.offset <= 0)
      return static_cast<std::int64_t>(page.jobs.size());
    const Way by = filter_.ways().empty() ? Way{By::Seq} : way;
    Sql sql;
    sql << "SELECT count(*) FROM (SELECT 1 AS n";
    from(sql, by, filter_.branches(by, false)[0], true);
    sql << " LIMIT ";
    sql.bind(kCountLimit + 1) << ") found";
    return number(sql);
  }

  Result<std::vector<JobRow>> read(const Sql& sql) {
    note(sql);
    return select<JobRow>(session_, sql.text, sql.values, read_job);
  }
  Result<std::int64_t> number(const Sql& sql) {
    note(sql);
    return select_number(session_, sql.text, sql.values);
  }
  void note(const Sql& sql) {
    if (statements_ != nullptr) statements_->push_back(sql.text);
  }

  Session& session_;
  const JobQuery& query_;
  JobFilter filter_;
  std::vector<std::string>* statements_;
  std::int64_t limit_;
  Cursor cursor_;
};

}  // namespace

Result<JobPage> list_jobs(Session& session, const JobQuery& query) {
  return JobList(session, query, nullptr).page();
}

Result<std::vector<std::string>> list_statements(Session& session, const JobQuery& query) {
  std::vector<std::string> statements;
  const Result<JobPage> page = JobList(session, query, &statements).page();
  if (!page) return page.error();
  return statements;
}

std::string indexed_by(Dialect dialect, const char* index) {
  return dialect == Dialect::Sqlite ? std::string(" INDEXED BY ") + index : std::string();
}

std::string end_of_prefix(const std::string& prefix) {
  return prefix + "\xf4\x8f\xbf\xbf";  // U+10FFFF, which is no character
}

}  // namespace gs::store
