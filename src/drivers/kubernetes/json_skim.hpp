// Finds the members of a JSON object without reading their values: what is watched is large, comes
// often, and most of it is looked at once or never.
//
// It trusts the text to be JSON and finds the borders of values only: text that is no JSON is
// refused or cut at borders that a real reader will refuse. Of members with one name the last
// counts.
#pragma once

#include <string_view>

namespace gs {

class JsonSkim {
 public:
  explicit JsonSkim(std::string_view text) : text_(text) {}

  // Calls member(key, value) for each member of the object until it says false; both as they are
  // written, the key without its quotes. False: not an object, or broken.
  template <typename Member>
  bool object(Member&& member) {
    if (!enter('{')) return false;
    if (leave('}')) return is_over();
    while (true) {
      std::string_view key, value;
      if (!next_value(key) || key.size() < 2 || key.front() != '"') return false;
      key = key.substr(1, key.size() - 2);
      if (!enter(':') || !next_value(value)) return false;
      if (!member(key, value)) return true;
      if (leave('}')) return is_over();
      if (!enter(',')) return false;
    }
  }
  // Calls element(value) for each element of the array.
  template <typename Element>
  bool array(Element&& element) {
    if (!enter('[')) return false;
    if (leave(']')) return is_over();
    while (true) {
      std::string_view value;
      if (!next_value(value)) return false;
      element(value);
      if (leave(']')) return is_over();
      if (!enter(',')) return false;
    }
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool enter(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool leave(char c) { return enter(c); }
  bool is_over() {
    skip_space();
    return at_ == text_.size();
  }
  bool next_value(std::string_view& value);
  bool skip_string();
  bool skip_nested();

  std::string_view text_;
  std::size_t at_ = 0;
};

// The text inside a JSON string, as it is written between the quotes; empty: it is no string.
inline std::string_view skim_string(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return {};
  return value.substr(1, value.size() - 2);
}

}  // namespace gs
