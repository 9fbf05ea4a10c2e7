#include "sim/csv.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

namespace gs {

Result<std::string> read_text(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return not_found(fmt::format("{}: cannot be opened", path.string()));
  std::string text;
  std::array<char, 1 << 16> buffer;
  int n = 0;
  while ((n = gzread(file, buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  const bool whole = n == 0 && gzclose(file) == Z_OK;
  if (!whole) return invalid(fmt::format("{}: not a readable file", path.string()));
  return text;
}

int Csv::column(const std::string& wanted) const {
  for (std::size_t i = 0; i < header.size(); ++i)
    if (header[i] == wanted) return static_cast<int>(i);
  return -1;
}

namespace {

std::vector<std::string> fields(std::string_view line) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    out.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

Result<Csv> read_csv(const std::filesystem::path& path) {
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  Csv csv;
  csv.name = path.string();
  std::string_view rest = *text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    std::vector<std::string> row = fields(line);
    if (csv.header.empty()) {
      csv.header = std::move(row);
      continue;
    }
    if (row.size() != csv.header.size())
      return invalid(fmt::format("{}:{}: {} fields, the header has {}", csv.name, number,
                                 row.size(), csv.header.size()));
    csv.rows.push_back(std::move(row));
  }
  if (csv.header.empty()) return invalid(fmt::format("{}: empty", csv.name));
  return csv;
}

Result<std::int64_t> to_number(const Csv& csv, std::size_t row, int column, std::int64_t empty) {
  const std::string& field = csv.rows[row][static_cast<std::size_t>(column)];
  if (field.empty()) return empty;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size())
    return invalid(fmt::format("{}: row {}: {} is not a number: '{}'", csv.name, row + 1,
                               csv.header[static_cast<std::size_t>(column)], field));
  return value;
}

}  // namespace gs
