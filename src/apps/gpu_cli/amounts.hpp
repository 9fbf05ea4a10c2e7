// Amounts and pairs as people write them in flags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "wire/json_reader.hpp"

namespace gs::cli {

// "64G", "64GiB", "1T", "512M"; a bare number is MiB. In MiB.
Result<std::int64_t> parse_mib(std::string_view text);

// ["A=1", "B=x=y"] as {"A": "1", "B": "x=y"}. Where `inherit`, "C" alone takes the value that the
// variable C has here.
Result<Json> parse_pairs(const char* flag, const std::vector<std::string>& texts,
                         bool inherit = false);

// The jobs of a file: one object, an array, {"jobs": [...]}, or YAML documents, as a list.
Result<std::vector<Json>> parse_jobs(std::string_view text);

// A word that nobody else has, for requests that may be repeated.
std::string unique_key();

}  // namespace gs::cli
