#include "wire/kube/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace gs::kube {
namespace {

__extension__ using Wide = __int128;
__extension__ using Unsigned = unsigned __int128;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr Wide kNano = 1'000'000'000;
constexpr Wide kMostNano = Wide{kMost} * kNano;

// A number is digits * 10^power * 1024^kibi.
struct Parts {
  bool negative = false;
  std::string_view whole, fraction;
  int power = 0;
  int kibi = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

bool read_suffix(std::string_view suffix, Parts& parts) {
  constexpr std::string_view kDecimal = "num kMGTPE";  // 10^-9, -6, -3, 0, 3, ...
  constexpr std::string_view kBinary = "KMGTPE";
  if (suffix.empty()) return true;
  if (suffix.size() == 1) {
    const std::size_t at = kDecimal.find(suffix[0]);
    parts.power = 3 * (static_cast<int>(at) - 3);
    return at != std::string_view::npos && suffix[0] != ' ';
  }
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const std::size_t at = kBinary.find(suffix[0]);
    parts.kibi = static_cast<int>(at) + 1;
    return at != std::string_view::npos;
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return false;
  suffix.remove_prefix(suffix[1] == '+' && suffix.size() > 2 && is_digit(suffix[2]) ? 2 : 1);
  const auto [end, error] =
      std::from_chars(suffix.data(), suffix.data() + suffix.size(), parts.power);
  return error == std::errc{} && end == suffix.data() + suffix.size() &&
         std::abs(static_cast<long>(parts.power)) <= 1'000'000;
}

std::optional<Parts> split(std::string_view text) {
  Parts parts;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    parts.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  parts.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
  }
  if (parts.whole.empty() && parts.fraction.empty()) return std::nullopt;
  return read_suffix(text, parts) ? std::optional(parts) : std::nullopt;
}

// A whole number of any size, lowest part first, in base 10^9.
class Big {
 public:
  void multiply_add(std::uint64_t factor, std::uint64_t add) {
    for (std::uint32_t& part : parts_) {
      add += part * factor;
      part = static_cast<std::uint32_t>(add % kBase);
      add /= kBase;
    }
    for (; add != 0; add /= kBase) parts_.push_back(static_cast<std::uint32_t>(add % kBase));
  }
  bool divide(std::uint32_t divisor) {  // whether something was left over
    std::uint64_t rest = 0;
    for (std::size_t i = parts_.size(); i-- > 0;) {
      rest = rest * kBase + parts_[i];
      parts_[i] = static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
    while (!parts_.empty() && parts_.back() == 0) parts_.pop_back();
    return rest != 0;
  }
  bool is_zero() const { return parts_.empty(); }
  Wide capped() const {
    Wide value = 0;
    if (parts_.size() > 4) return kMostNano;
    for (std::size_t i = parts_.size(); i-- > 0;) value = value * kBase + parts_[i];
    return std::min(value, kMostNano);
  }

 private:
  static constexpr std::uint64_t kBase = 1'000'000'000;
  std::vector<std::uint32_t> parts_;
};

// Any number of digits; rare enough to be allowed to be slow.
Wide nano_of_long(const Parts& parts) {
  Big number;
  for (const std::string_view digits : {parts.whole, parts.fraction})
    for (const char c : digits) number.multiply_add(10, static_cast<std::uint64_t>(c - '0'));
  for (int i = 0; i < parts.kibi; ++i) number.multiply_add(1024, 0);
  long power = parts.power + 9L - static_cast<long>(parts.fraction.size());
  bool left_over = false;
  for (; power < 0 && !number.is_zero(); ++power) left_over |= number.divide(10);
  for (; power > 0 && !number.is_zero() && number.capped() < kMostNano; --power)
    number.multiply_add(10, 0);
  if (left_over) number.multiply_add(1, 1);
  return number.capped();
}

// Up to 18 digits: a 60-bit number times 2^60 fits into 128 bits.
Wide nano_of_short(const Parts& parts) {
  std::uint64_t digits = 0;
  for (const std::string_view part : {parts.whole, parts.fraction})
    for (const char c : part) digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
  Unsigned number = Unsigned{digits} << (10 * parts.kibi);
  int power = parts.power + 9 - static_cast<int>(parts.fraction.size());
  bool left_over = false;
  for (; power < 0 && number != 0; ++power) {
    left_over |= number % 10 != 0;
    number /= 10;
  }
  const auto most = static_cast<Unsigned>(kMostNano);
  for (; power > 0 && number != 0 && number < most; --power) number *= 10;
  return static_cast<Wide>(std::min(number + (left_over ? 1 : 0), most));
}

}  // namespace

Quantity Quantity::of_nano(Wide nano) {
  Quantity quantity;
  quantity.nano_ = std::clamp(nano, -kMostNano, kMostNano);
  return quantity;
}

Quantity Quantity::units(std::int64_t n) { return of_nano(Wide{n} * kNano); }

std::int64_t Quantity::value() const {
  const Wide away = nano_ < 0 ? -(kNano - 1) : kNano - 1;
  return static_cast<std::int64_t>((nano_ + away) / kNano);
}

std::int64_t Quantity::milli() const {
  constexpr Wide kStep = 1'000'000;
  const Wide away = nano_ < 0 ? -(kStep - 1) : kStep - 1;
  return static_cast<std::int64_t>(std::clamp((nano_ + away) / kStep, Wide{-kMost}, Wide{kMost}));
}

Quantity& Quantity::operator+=(const Quantity& other) {
  return *this = of_nano(nano_ + other.nano_);
}

Result<Quantity> parse_quantity(std::string_view text) {
  const std::optional<Parts> parts = split(text);
  if (!parts)
    return invalid("'" + std::string(text.substr(0, 40)) +
                   "' is no quantity; they look like 2, 500m, 1.5Gi or 1e3 (suffixes: n u m k M G "
                   "T P E Ki Mi Gi Ti Pi Ei)");
  const bool is_short = parts->whole.size() + parts->fraction.size() <= 18;
  const Wide nano = is_short ? nano_of_short(*parts) : nano_of_long(*parts);
  return Quantity::of_nano(parts->negative ? -nano : nano);
}

}  // namespace gs::kube
