#include "drivers/auth/api_keys.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "drivers/auth/crypto.hpp"

namespace gs {
namespace {

constexpr std::size_t kMaxKeys = 10'000;

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '@' ||
           c == '-';
  });
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos;
       at = line.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

Status check(const Caller& caller) {
  if (!is_word(caller.name)) return invalid("a name is up to 64 letters, digits and . _ @ -");
  if (!caller.tenant.empty() && !is_word(caller.tenant))
    return invalid("a tenant is up to 64 letters, digits and . _ @ -");
  return validate(caller);
}

Result<Caller> caller_of(std::string_view name, std::string_view role) {
  const std::size_t colon = role.find(':');
  const std::optional<Role> known = role_of(role.substr(0, colon));
  if (!known) return invalid("a role is admin, tenant:TENANT, viewer, viewer:TENANT or agent");
  if (colon != role.npos && colon + 1 == role.size()) return invalid("no tenant after the colon");
  const Caller caller{
      .role = *known,
      .tenant = std::string(colon == role.npos ? "" : role.substr(colon + 1)),
      .name = std::string(name),
  };
  if (const Status status = check(caller); !status.ok()) return status.error();
  return caller;
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text) {
  ApiKeys keys;
  std::set<std::string> names, digests;
  int number = 0;
  const auto wrong = [&](std::string_view what) {
    return invalid(fmt::format("line {}: {}", number, what));
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> fields = fields_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (fields.empty() || fields.front().starts_with('#')) continue;
    if (fields.size() != 3) return wrong("must be `name role[:tenant] sha256`");
    Result<Caller> caller = caller_of(fields[0], fields[1]);
    if (!caller.ok()) return wrong(caller.error().message);
    std::optional<std::string> digest = from_hex(fields[2]);
    if (!digest || digest->size() != 32) return wrong("a SHA-256 has 64 hexadecimal digits");
    if (!names.insert(caller->name).second) return wrong("the name was used above");
    if (!digests.insert(*digest).second) return wrong("the same key was used above");
    if (keys.entries_.size() == kMaxKeys) return wrong("more than 10000 keys");
    keys.entries_.push_back({std::move(*caller), std::move(*digest)});
  }
  return keys;
}

std::optional<Caller> ApiKeys::find(std::string_view key) const {
  const std::string digest = sha256(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (equal_in_constant_time(entry.digest, digest)) found = &entry;
  return found == nullptr ? std::nullopt : std::optional(found->caller);
}

Result<NewApiKey> make_api_key(const Caller& caller) {
  if (const Status status = check(caller); !status.ok()) return status.error();
  // The prefix lets scanners for leaked secrets find it.
  std::string key = "gsk_" + base64url_encode(random_bytes(32));
  std::string line = fmt::format("{} {}{}{} {}", caller.name, to_string(caller.role),
                                 caller.tenant.empty() ? "" : ":", caller.tenant, hex(sha256(key)));
  return NewApiKey{std::move(key), std::move(line)};
}

}  // namespace gs
