#include "wire/kube/selector.hpp"

#include <algorithm>
#include <utility>

namespace gs::kube {
namespace {

constexpr std::pair<std::string_view, LabelOp> kOperators[] = {
    {"In", LabelOp::In},         {"NotIn", LabelOp::NotIn},
    {"Exists", LabelOp::Exists}, {"DoesNotExist", LabelOp::NotExists},
    {"Gt", LabelOp::Gt},         {"Lt", LabelOp::Lt}};

}  // namespace

bool matches(const LabelSelector& selector, const Labels& labels) {
  return gs::matches(selector.terms, labels);
}

bool matches(const std::optional<LabelSelector>& selector, const Labels& labels) {
  return selector && matches(*selector, labels);
}

void read(Cursor& in, LabelTerm& term) {
  in.object([&](std::string_view field) {
    if (field == "key") in.read(term.key);
    if (field == "values") in.read(term.values);
    if (field == "operator") {
      std::string word;
      in.read(word);
      const auto* known = std::find_if(std::begin(kOperators), std::end(kOperators),
                                       [&](const auto& pair) { return pair.first == word; });
      if (known == std::end(kOperators))
        return in.fail("must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt; got '" + word +
                       "'");
      term.op = known->second;
    }
  });
}

void read(Cursor& in, LabelSelector& selector) {
  Labels labels;
  in.object([&](std::string_view field) {
    if (field == "matchLabels") in.read(labels);
    if (field == "matchExpressions") in.array([&] { read(in, selector.terms.emplace_back()); });
  });
  for (auto& [key, value] : labels)
    selector.terms.push_back({std::move(key), LabelOp::In, {std::move(value)}});
}

void read(Cursor& in, std::optional<LabelSelector>& selector) {
  if (in.next() == 'n') return in.skip();
  read(in, selector.emplace());
}

}  // namespace gs::kube
