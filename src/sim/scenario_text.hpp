// Text of a scenario file: lines of words and key=value pairs, and what the values mean.
//
// A line is `word word key=value flag "quoted text"`; `#` starts a comment. An indented line
// belongs to the line before it that is not indented. `name[1..3]` repeats the line with name1,
// name2, name3; `{1}` elsewhere in the line is the number, `{2}` that of a second range.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs::scenario {

struct Word {
  std::string key;    // of key=value; else empty
  std::string value;  // or the word itself
  bool quoted = false;
  bool pair() const { return !key.empty(); }
};

struct Line {
  int number = 0;
  std::string text;  // without comment and indentation
  std::vector<Word> words;
};

// A line with the indented lines under it.
struct Block {
  Line head;
  std::vector<Line> body;
};

// Errors read `line 7: ...`; the caller puts the file in front.
Result<std::vector<Block>> read_blocks(const std::string& text);
Error at_line(int number, const std::string& message);

// "unknown key 'gpuz' (did you mean 'gpus'?)"
std::string unknown(const std::string& what, const std::string& word,
                    const std::vector<std::string>& known);

// One value. A method that cannot read it writes down the problem and returns something harmless.
class Value {
 public:
  Value(std::string text, std::string& problem) : text_(std::move(text)), problem_(&problem) {}

  const std::string& text() const { return text_; }
  std::int64_t number() const;
  int integer() const;
  double decimal() const;
  Duration duration() const;   // "1h30m", "90s", "500ms"
  std::int64_t bytes() const;  // "512GiB", "40GB"
  std::int64_t mib() const;    // the same in MiB
  std::int64_t milli() const;  // "4", "0.5", "500m"
  bool flag() const;           // yes no on off; a bare key is yes
  std::vector<std::string> list(char separator = ',') const;
  std::vector<int> numbers() const;                                 // "0-3,6"
  std::pair<std::string, std::string> split(char separator) const;  // at the last one

  template <typename E>
  E one_of(std::initializer_list<std::pair<const char*, E>> words) const {
    std::vector<std::string> known;
    for (const auto& [word, value] : words) {
      if (text_ == word) return value;
      known.emplace_back(word);
    }
    fail(unknown("value", text_, known));
    return words.begin()->second;
  }
  void fail(const std::string& message) const {
    if (problem_->empty()) *problem_ = message;
  }
  Value with(std::string text) const { return Value(std::move(text), *problem_); }

 private:
  std::string text_;
  std::string* problem_;
};

// A key, and what it sets. Tables of these are the vocabulary.
template <typename T>
struct Field {
  const char* key;
  void (*set)(T&, const Value&);
};

// Applies the pairs and flags of a line from `first` on.
template <typename T>
Status apply(const Line& line, std::size_t first, std::span<const Field<T>> fields, T& target) {
  for (std::size_t i = first; i < line.words.size(); ++i) {
    const Word& word = line.words[i];
    const std::string& key = word.pair() ? word.key : word.value;
    const Field<T>* found = nullptr;
    std::vector<std::string> known;
    for (const Field<T>& field : fields) {
      if (key == field.key) found = &field;
      known.emplace_back(field.key);
    }
    if (found == nullptr || word.quoted) return at_line(line.number, unknown("key", key, known));
    std::string problem;
    found->set(target, Value(word.pair() ? word.value : "yes", problem));
    if (!problem.empty()) return at_line(line.number, key + ": " + problem);
  }
  return ok_status();
}

}  // namespace gs::scenario
