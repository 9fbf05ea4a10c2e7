// A forward-only reader over the text of one JSON value: what is not asked for is stepped over
// without being built, so that an event of a watch costs one pass over its bytes.
//
//   Cursor in(text);
//   in.object([&](std::string_view field) {
//     if (field == "name") in.read(pod.name);
//     else if (field == "ports") in.array([&] { ... });
//   });                                     // a field that nobody read is stepped over
//   if (Status status = in.finish(); !status) return status.error();
//
// The first error is kept and what follows it does nothing. It names the place as a path
// ("spec.containers[1].name must be a string, got a number"). `null` counts as not given: reading
// it leaves the target as it is. Nesting is bounded by kMaxJsonDepth.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/node.hpp"
#include "wire/json_reader.hpp"

namespace gs::kube {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // Calls on_field(name) for each field; the name is valid during the call only.
  template <typename OnField>
  void object(OnField&& on_field) {
    if (!open('{', "an object")) return;
    std::string unescaped;
    for (bool first = true; !close('}', first); first = false) {
      const std::string_view name = key(unescaped);
      if (failed()) return;
      path_[depth_ - 1] = {name, -1};
      const std::size_t before = at_;
      on_field(name);
      if (!failed() && at_ == before) skip();
    }
  }
  // Calls on_element() for each element.
  template <typename OnElement>
  void array(OnElement&& on_element) {
    if (!open('[', "a list")) return;
    for (int index = 0; !close(']', index == 0); ++index) {
      path_[depth_ - 1] = {{}, index};
      const std::size_t before = at_;
      on_element();
      if (!failed() && at_ == before) skip();
    }
  }

  void read(std::string& out);
  void read(bool& out);
  void read(int& out);
  void read(std::int64_t& out);
  void read(std::vector<std::string>& out);
  void read(Labels& out);  // an object of strings: sorted by key; of equal keys the last counts

  void skip();             // steps over the value
  std::string_view raw();  // steps over the value and returns its text
  char next();             // the first character of the value that comes; 0 at the end

  // "<path of the value being read> <rule>"; kept if it is the first error.
  void fail(std::string_view rule);
  bool failed() const { return failed_; }
  // The first error, or that something follows the value.
  Status finish();

 private:
  struct Step {
    std::string_view name;
    int index = -1;  // -1: a field
  };

  bool open(char bracket, const char* what);
  bool close(char bracket, bool first);
  std::string_view key(std::string& unescaped);
  bool null();
  void blanks();
  bool string_body(std::size_t& end, bool& escaped);  // at_ stands on the quote
  void unescape(std::string_view body, std::string& out);
  void skip_scalar();
  void broken(const char* what);  // not JSON
  void wrong_type(const char* wanted);
  std::string path() const;

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::array<Step, kMaxJsonDepth> path_;
  bool failed_ = false;
  std::string error_;
};

}  // namespace gs::kube
