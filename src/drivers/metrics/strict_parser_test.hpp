// Reads Prometheus' text format 0.0.4, and refuses what a scraper or `promtool check metrics` would
// complain about.
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace gs::strict {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct ParsedFamily {
  std::string type, help;
  std::vector<Sample> samples;
};

struct Page {
  std::map<std::string, ParsedFamily> families;
  std::vector<std::string> errors;
};

// Reads `{a="b",...}`; returns what is left of the line, or sets `error`.
inline std::string read_labels(std::string rest, Sample& sample, std::string& error) {
  static const std::regex name(R"(^([a-zA-Z_][a-zA-Z0-9_]*)=")");
  if (!rest.starts_with('{')) return rest;
  rest.erase(0, 1);
  while (!rest.starts_with('}')) {
    std::smatch match;
    if (!std::regex_search(rest, match, name)) return error = "bad label name", rest;
    const std::string label = match[1];
    std::string value;
    std::size_t at = static_cast<std::size_t>(match.length());
    for (; at < rest.size() && rest[at] != '"'; ++at) {
      if (rest[at] != '\\') {
        value += rest[at];
        continue;
      }
      ++at;
      if (at >= rest.size() || std::string("\\\"n").find(rest[at]) == std::string::npos)
        return error = "bad escape", rest;
      value += rest[at] == 'n' ? '\n' : rest[at];
    }
    if (at >= rest.size()) return error = "unfinished label value", rest;
    if (!sample.labels.emplace(label, value).second) return error = "label given twice", rest;
    rest.erase(0, at + 1);
    if (rest.starts_with(','))
      rest.erase(0, 1);
    else if (!rest.starts_with('}'))
      return error = "no comma between labels", rest;
  }
  return rest.substr(1);
}

inline std::string read_sample(const std::string& line, Sample& sample) {
  static const std::regex name("^[a-zA-Z_:][a-zA-Z0-9_:]*");
  std::smatch match;
  if (!std::regex_search(line, match, name)) return "bad metric name";
  sample.name = match[0];
  std::string error;
  const std::string rest = read_labels(line.substr(sample.name.size()), sample, error);
  if (!error.empty()) return error;
  if (!rest.starts_with(' ') || rest.size() < 2 || rest.find(' ', 1) != std::string::npos)
    return "one blank and a value must follow the name";
  char* end = nullptr;
  sample.value = std::strtod(rest.c_str() + 1, &end);
  return *end == 0 ? "" : "bad value";
}

inline void check_histogram(const std::string& name, const ParsedFamily& family,
                            std::vector<std::string>& errors) {
  struct Series {
    std::vector<std::pair<double, double>> buckets;
    int sums = 0;
    double count = -1;
  };
  std::map<std::map<std::string, std::string>, Series> all;
  for (Sample sample : family.samples) {
    const std::string bound = sample.labels["le"];
    sample.labels.erase("le");
    Series& series = all[sample.labels];
    if (sample.name == name + "_bucket")
      series.buckets.emplace_back(std::strtod(bound.c_str(), nullptr), sample.value);
    else if (sample.name == name + "_sum")
      ++series.sums;
    else
      series.count = sample.value;
  }
  for (const auto& [labels, series] : all) {
    if (series.sums != 1 || series.buckets.empty() || !std::isinf(series.buckets.back().first) ||
        series.buckets.back().second != series.count)
      errors.push_back(name + ": needs one _sum, and +Inf equal to _count");
    for (std::size_t i = 1; i < series.buckets.size(); ++i)
      if (series.buckets[i].first <= series.buckets[i - 1].first ||
          series.buckets[i].second < series.buckets[i - 1].second)
        errors.push_back(name + ": buckets must rise");
  }
}

inline void check_family(const std::string& name, const ParsedFamily& family,
                         std::vector<std::string>& errors) {
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  for (const Sample& sample : family.samples) {
    if (!seen.emplace(sample.name, sample.labels).second)
      errors.push_back(sample.name + ": the same series twice");
    if (family.type != "gauge" && !sample.name.ends_with("_sum") && !(sample.value >= 0))
      errors.push_back(sample.name + ": must not be negative");
    if (family.type != "histogram" && sample.labels.contains("le"))
      errors.push_back(sample.name + ": `le` is for histograms");
  }
  if (family.help.empty()) errors.push_back(name + ": no help");
  if (family.type == "counter" && !name.ends_with("_total"))
    errors.push_back(name + ": a counter ends in _total");
  if (family.type != "counter" && name.ends_with("_total"))
    errors.push_back(name + ": only counters end in _total");
  if (family.type == "histogram") check_histogram(name, family, errors);
}

inline Page parse(const std::string& text) {
  Page page;
  if (!text.empty() && text.back() != '\n') page.errors.emplace_back("no newline at the end");
  static const std::regex help(R"(^# HELP (\S+) (.*)$)"), type(R"(^# TYPE (\S+) (\S+)$)");
  std::istringstream in(text);
  std::string current;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto wrong = [&](const std::string& what) {
      page.errors.push_back("line " + std::to_string(number) + ": " + what + ": " + line);
    };
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      current = match[1];
      if (page.families.contains(current)) wrong("a family twice");
      page.families[current].help = match[2];
    } else if (std::regex_match(line, match, type)) {
      if (match[1] != current || !page.families[current].type.empty()) wrong("TYPE follows HELP");
      page.families[current].type = match[2];
    } else {
      Sample sample;
      if (const std::string error = read_sample(line, sample); !error.empty()) {
        wrong(error);
        continue;
      }
      ParsedFamily& family = page.families[current];
      const bool fits = family.type == "histogram" ? sample.name == current + "_bucket" ||
                                                         sample.name == current + "_sum" ||
                                                         sample.name == current + "_count"
                                                   : sample.name == current;
      if (!fits || family.type.empty()) wrong("not of the family before it");
      family.samples.push_back(sample);
    }
  }
  for (const auto& [name, family] : page.families) check_family(name, family, page.errors);
  return page;
}

}  // namespace gs::strict
