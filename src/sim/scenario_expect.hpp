// Inside of the expectations: the words of a line, and clauses by file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace gs::scenario {

// The words of a line from left to right. What cannot be read is written down as the problem.
class Words {
 public:
  Words(const Line& line, std::size_t first) : line_(line), next_(first) {}

  bool left() const { return next_ < line_.words.size() && problem_.empty(); }
  const Word& peek() const { return line_.words[next_]; }
  bool next_is(const std::string& word) const;
  std::string take(const std::string& what);
  bool take_if(const std::string& word);
  std::vector<std::string> take_quoted();
  std::vector<Word> take_pairs();  // key=value and key>=value
  Value value(const std::string& what);
  void fail(const std::string& message) {
    if (problem_.empty()) problem_ = message;
  }
  const std::string& problem() const { return problem_; }

 private:
  const Line& line_;
  std::size_t next_;
  std::string problem_;
};

struct TaskSubject {
  std::string job;
  std::string group;
  int rank = -1;
};
std::vector<TaskPlace> places_of(Play& play, const TaskSubject& subject);
std::optional<Why> reason_of(Play& play, const std::string& job);

// A word that begins a clause ends a list of places.
bool is_clause(const std::string& word);
bool is_state(const std::string& word);
bool is_constraint(const std::string& word);
std::vector<std::string> state_words();
std::vector<std::string> constraint_words();

// Clauses about where tasks lie together, and about the parts of an explanation.
Check in_clause(const TaskSubject& subject, Words& words);
Check packs_clause(const TaskSubject& subject, Words& words);
Check score_clause(const std::string& job, Words& words);
Check filters_clause(const std::string& job, Words& words);
Check best_clause(const std::string& job, Words& words);
Check quota_clause(const std::string& job, Words& words);

// `refused`, `error`, `dry-run`, `tenant`, `node`, `replay`, `restore`: not about one job's state.
std::optional<Expect> read_special_expect(Words& words);

}  // namespace gs::scenario
