// The filters of a JobQuery as SQL: which index answers which of them, and what remains to be asked
// of each row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/store/session.hpp"
#include "service/store.hpp"

namespace gs::store {

// A statement and its values, which are bound in the order in which they appear.
struct Sql {
  std::string text;
  std::vector<Value> values;

  Sql& operator<<(std::string_view more) {
    text += more;
    return *this;
  }
  Sql& bind(Value value) {
    values.push_back(std::move(value));
    text += '$' + std::to_string(values.size());
    return *this;
  }
};

enum class By { Seq, Tenant, State, Name, Array, Label, Priority };

// What leads to the rows: an index, and for labels which one.
struct Way {
  By by = By::Seq;
  std::size_t label = 0;
  std::int64_t size = 0;  // rows, counted up to a bound
};

// A part of a way that is in order by itself.
struct Branch {
  std::string source;
  std::vector<RunState> states;     // of its rows; empty: any
  const char* condition = "1 = 1";  // of its index
};

class JobFilter {
 public:
  JobFilter(const JobQuery& query, Dialect dialect);

  // The filters of the query, each as the way that answers it.
  const std::vector<Way>& ways() const { return ways_; }
  bool is_name_prefix() const { return is_prefix_; }
  bool only_ended() const;  // no state that a live job can have

  // `in_order`: each branch gives its rows by seq (or by the key of its index, then by seq).
  std::vector<Branch> branches(const Way& way, bool in_order) const;
  // Only what the way answers.
  void own_condition(Sql& sql, const Way& way, const Branch& branch) const;
  // " AND ...": every filter but the one of the way.
  void other_conditions(Sql& sql, const Way& way) const;

 private:
  std::string jobs(const char* index) const;
  void states_condition(Sql& sql, const std::vector<RunState>& states) const;

  const JobQuery& query_;
  Dialect dialect_;
  bool is_prefix_ = false;
  std::string name_;
  std::vector<RunState> states_;
  std::vector<Way> ways_;
};

}  // namespace gs::store
