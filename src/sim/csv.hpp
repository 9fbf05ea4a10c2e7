// Comma-separated tables as traces have them: a header line, no quoting, perhaps gzipped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gs {

// The whole file; gzipped ones are unpacked.
Result<std::string> read_text(const std::filesystem::path& path);

struct Csv {
  std::string name;  // of the file, for messages
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header

  int column(const std::string& name) const;  // -1: there is none
};

Result<Csv> read_csv(const std::filesystem::path& path);

// A number in a field; the message names file and line. Empty counts as `empty`.
Result<std::int64_t> to_number(const Csv& csv, std::size_t row, int column, std::int64_t empty = 0);

}  // namespace gs
