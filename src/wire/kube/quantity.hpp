// Amounts as Kubernetes writes them: "100m", "1.5Gi", "1e3", "12E".
//
// Exact integer arithmetic: what does not fit a whole unit is rounded away from zero, as Kubernetes
// does, and what is beyond 2^63 - 1 units becomes that.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gs::kube {

class Quantity {
 public:
  Quantity() = default;
  static Quantity units(std::int64_t n);

  std::int64_t value() const;  // whole units
  std::int64_t milli() const;  // thousandths
  bool is_zero() const { return nano_ == 0; }
  bool is_negative() const { return nano_ < 0; }
  auto operator<=>(const Quantity&) const = default;
  Quantity& operator+=(const Quantity& other);

 private:
  friend Result<Quantity> parse_quantity(std::string_view text);
  __extension__ using Wide = __int128;

  static Quantity of_nano(Wide nano);

  Wide nano_ = 0;  // billionths: the finest that Kubernetes knows
};

// The error says what a quantity looks like; the caller names the field.
Result<Quantity> parse_quantity(std::string_view text);

}  // namespace gs::kube
