// API keys: a file of lines `name role[:tenant] sha256-of-the-key`, blank lines and # comments.
// Whoever reads the file can't use the keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "service/access.hpp"

namespace gs {

class ApiKeys {
 public:
  // Names and keys are unique; the message names the line.
  static Result<ApiKeys> parse(std::string_view text);

  // Who has this key. Takes the same time whichever key it is.
  std::optional<Caller> find(std::string_view key) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Caller caller;
    std::string digest;
  };
  std::vector<Entry> entries_;
};

struct NewApiKey {
  std::string key;   // for its owner, shown once
  std::string line;  // for the file
};
// The caller's name is one word of letters, digits and . _ @ -
Result<NewApiKey> make_api_key(const Caller& caller);

}  // namespace gs
