#include "model/mig.hpp"

#include <array>
#include <cctype>

namespace gs {
namespace {

constexpr std::uint8_t kAnyOfSeven = 0b0111'1111;
constexpr std::uint8_t kEven4 = 0b0101'0101;   // 0 2 4 6
constexpr std::uint8_t kEven3 = 0b0001'0101;   // 0 2 4
constexpr std::uint8_t kHalves = 0b0001'0001;  // 0 4
constexpr std::uint8_t kStart0 = 0b0000'0001;

// Memory of one, two (double), three/four and seven slices as the names spell it.
std::vector<MigProfile> family(int one, int two, int half, int whole) {
  const auto gb = [](int compute, int memory) {
    return std::to_string(compute) + "g." + std::to_string(memory) + "gb";
  };
  return {
      {gb(1, one), 1, 1, kAnyOfSeven, false}, {gb(1, one) + "+me", 1, 1, kAnyOfSeven, true},
      {gb(1, two), 1, 2, kEven4, false},      {gb(2, two), 2, 2, kEven3, false},
      {gb(3, half), 3, 4, kHalves, false},    {gb(4, half), 4, 4, kStart0, false},
      {gb(7, whole), 7, 8, kStart0, false},
  };
}

}  // namespace

const std::vector<MigProfile>& mig_profiles(const std::string& gpu_model, std::int64_t memory_mib) {
  static const std::vector<MigProfile> none;
  static const auto gb40 = family(5, 10, 20, 40);
  static const auto gb80 = family(10, 20, 40, 80);
  static const auto gb94 = family(12, 24, 47, 94);
  static const auto gb96 = family(12, 24, 48, 96);
  static const auto gb141 = family(18, 35, 71, 141);
  const auto is = [&](const char* name) { return gpu_model.find(name) != std::string::npos; };
  const std::int64_t gib = memory_mib / 1024;
  if (is("A100")) return gib < 60 ? gb40 : gb80;
  if (is("H200")) return gb141;
  if (is("H100")) return gib < 88 ? gb80 : gib < 95 ? gb94 : gb96;
  return none;
}

const MigProfile* find_mig_profile(const std::string& gpu_model, std::int64_t memory_mib,
                                   const std::string& profile) {
  for (const auto& candidate : mig_profiles(gpu_model, memory_mib))
    if (candidate.name == profile) return &candidate;
  return nullptr;
}

std::string canonical_mig_profile(const std::string& name) {
  const std::string prefix = "nvidia.com/mig-";
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}

int mig_compute_slices(const std::string& profile) {
  if (profile.size() < 5 || std::isdigit(static_cast<unsigned char>(profile[0])) == 0) return 0;
  if (profile[1] != 'g' || profile[2] != '.') return 0;
  return profile[0] - '0';
}

}  // namespace gs
