#include "wire/kube/instances.hpp"

#include <algorithm>
#include <charconv>

#include "base/gpu_mask.hpp"
#include "model/mig.hpp"

namespace gs::kube {
namespace {

bool parse_int(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

Error no_instance(std::string_view item) {
  return invalid("'" + std::string(item) + "' is no MIG instance: write GPU:PROFILE:START");
}

}  // namespace

std::string instances_text(const std::vector<MigPlace>& places) {
  std::string text;
  for (const MigPlace& place : places)
    text.append(text.empty() ? "" : " ")
        .append(std::to_string(place.gpu) + ":" + place.profile + ":" +
                std::to_string(place.start));
  return text;
}

Result<std::vector<MigPlace>> parse_instances(std::string_view text) {
  std::vector<MigPlace> places;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t first = item.find(':');
    const std::size_t last = item.rfind(':');
    MigPlace place;
    if (first == std::string_view::npos || first == last ||
        !parse_int(item.substr(0, first), place.gpu) ||
        !parse_int(item.substr(last + 1), place.start))
      return no_instance(item);
    place.profile = item.substr(first + 1, last - first - 1);
    if (place.gpu < 0 || place.gpu >= kMaxGpusPerNode || mig_compute_slices(place.profile) == 0)
      return no_instance(item);
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace gs::kube
