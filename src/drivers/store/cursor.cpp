#include "drivers/store/cursor.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/hash.hpp"

namespace gs::store {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kCheckBytes = 4;

std::string check_of(std::string_view payload) {
  const std::uint64_t hash = Hash().add(payload).value();
  std::string bytes;
  for (std::size_t i = 0; i < kCheckBytes; ++i) bytes += static_cast<char>(hash >> (8 * i));
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text += kAlphabet[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kAlphabet[bits << (6 - count) & 63];
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

std::string payload_of(const Cursor& cursor) {
  std::string payload;
  payload += static_cast<char>('0' + static_cast<int>(cursor.sort));
  payload += cursor.descending ? 'd' : 'a';
  return payload.append(std::to_string(cursor.seq)).append(":").append(cursor.key);
}

}  // namespace

std::string encode(const Cursor& cursor) {
  const std::string payload = payload_of(cursor);
  return to_base64(check_of(payload) + payload);
}

Result<Cursor> decode_cursor(const std::string& text, JobSort sort, bool descending) {
  const Error refused = invalid("cursor is not one that a page of this list gave");
  const std::optional<std::string> bytes = from_base64(text);
  if (!bytes || bytes->size() < kCheckBytes + 3) return refused;
  const std::string_view payload = std::string_view(*bytes).substr(kCheckBytes);
  if (std::string_view(*bytes).substr(0, kCheckBytes) != check_of(payload)) return refused;
  Cursor cursor{sort, descending, 0, {}};
  const char* end = payload.data() + payload.size();
  const auto [after, error] = std::from_chars(payload.data() + 2, end, cursor.seq);
  if (error != std::errc{} || after == end || *after != ':') return refused;
  cursor.key = std::string(after + 1, end);
  if (payload != payload_of(cursor)) return invalid("cursor belongs to another order of this list");
  int priority = 0;
  const char* key_end = cursor.key.data() + cursor.key.size();
  if (sort == JobSort::Priority &&
      std::from_chars(cursor.key.data(), key_end, priority).ptr != key_end)
    return refused;
  return cursor;
}

}  // namespace gs::store
