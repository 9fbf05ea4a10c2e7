#include "drivers/store/job_filter.hpp"

#include <algorithm>

#include "drivers/store/job_list.hpp"

namespace gs::store {
namespace {

const std::vector<RunState> kLive{RunState::Pending, RunState::Scheduled, RunState::Running,
                                  RunState::Preempted};
const std::vector<RunState> kEnded{RunState::Completed, RunState::Failed, RunState::Cancelled};
const std::vector<RunState> kAll{RunState::Pending,   RunState::Scheduled, RunState::Running,
                                 RunState::Completed, RunState::Failed,    RunState::Cancelled,
                                 RunState::Preempted};

bool share_one(const std::vector<RunState>& a, const std::vector<RunState>& b) {
  return std::any_of(a.begin(), a.end(), [&](RunState state) {
    return std::find(b.begin(), b.end(), state) != b.end();
  });
}

}  // namespace

JobFilter::JobFilter(const JobQuery& query, Dialect dialect) : query_(query), dialect_(dialect) {
  is_prefix_ = query.name.ends_with('*');
  name_ = is_prefix_ ? query.name.substr(0, query.name.size() - 1) : query.name;
  for (const RunState state : query.states)
    if (std::find(states_.begin(), states_.end(), state) == states_.end()) states_.push_back(state);
  if (!query.array_id.empty()) ways_.push_back({By::Array});
  for (std::size_t i = 0; i < query.labels.size(); ++i) ways_.push_back({By::Label, i});
  if (!name_.empty()) ways_.push_back({By::Name});
  if (!query.tenant.empty())
    ways_.push_back({By::Tenant});  // and by state too
  else if (!states_.empty())
    ways_.push_back({By::State});
}

std::string JobFilter::jobs(const char* index) const {
  return "jobs j" + indexed_by(dialect_, index);
}

std::vector<Branch> JobFilter::branches(const Way& way, bool in_order) const {
  std::vector<Branch> branches;
  const auto each = [&](const std::vector<RunState>& states, const char* index) {
    for (const RunState state : states) branches.push_back({jobs(index), {state}});
  };
  switch (way.by) {
    case By::Seq:
      return {{"jobs j", {}}};
    case By::Tenant:
      if (!in_order) return {{jobs("jobs_by_tenant"), states_}};
      each(states_.empty() ? kAll : states_, "jobs_by_tenant");
      return branches;
    case By::State:
      if (!in_order) return {{jobs("jobs_by_state"), states_}};
      each(states_, "jobs_by_state");
      return branches;
    case By::Name:
      return {{jobs("jobs_by_name"), {}}};
    case By::Array:
      return {{jobs("jobs_by_array"), {}}};
    case By::Label:
      return {{"job_labels l", {}}};
    case By::Priority:
      if (states_.empty() || share_one(states_, kLive))
        branches.push_back({jobs("live_jobs_by_priority"), {}, "j.state >= 'pending'"});
      for (const RunState state : kEnded)
        if (states_.empty() || share_one(states_, {state}))
          branches.push_back({jobs("ended_jobs_by_priority"), {state}, "j.state < 'pending'"});
      return branches;
  }
  return branches;
}

void JobFilter::states_condition(Sql& sql, const std::vector<RunState>& states) const {
  sql << (states.size() == 1 ? "j.state = '" : "j.state IN ('");
  for (std::size_t i = 0; i < states.size(); ++i)
    sql << (i == 0 ? "" : "', '") << to_string(states[i]);
  sql << (states.size() == 1 ? "'" : "')");
}

void JobFilter::own_condition(Sql& sql, const Way& way, const Branch& branch) const {
  switch (way.by) {
    case By::Tenant:
      sql << "j.tenant = ";
      sql.bind(query_.tenant);
      if (branch.states.empty()) return;
      sql << " AND ";
      return states_condition(sql, branch.states);
    case By::State:
      return states_condition(sql, branch.states);
    case By::Array:
      sql << "j.array_id <> '' AND j.array_id = ";
      sql.bind(query_.array_id);
      return;
    case By::Label: {
      const auto& [key, value] = query_.labels[way.label];
      sql << "l.key = ";
      sql.bind(key) << " AND l.value = ";
      sql.bind(value);
      return;
    }
    case By::Name:
      sql << (is_prefix_ || name_.empty() ? "j.name >= " : "j.name = ");
      sql.bind(name_);
      if (!is_prefix_ || name_.empty()) return;
      sql << " AND j.name < ";
      sql.bind(end_of_prefix(name_));
      return;
    case By::Seq:
    case By::Priority:
      sql << branch.condition;
      if (branch.states.empty()) return;
      sql << " AND ";
      return states_condition(sql, branch.states);
  }
}

bool JobFilter::only_ended() const { return !states_.empty() && !share_one(states_, kLive); }

void JobFilter::other_conditions(Sql& sql, const Way& way) const {
  for (const Way& other : ways_) {
    if (other.by == way.by && (way.by != By::Label || other.label == way.label)) continue;
    sql << " AND ";
    if (other.by != By::Label) {
      own_condition(sql, other, {{}, states_});
      continue;
    }
    const auto& [key, value] = query_.labels[other.label];
    sql << "EXISTS (SELECT 1 FROM job_labels x WHERE x.key = ";
    sql.bind(key) << " AND x.value = ";
    sql.bind(value) << " AND x.seq = j.seq)";
  }
}

}  // namespace gs::store
