#include "drivers/auth/authenticator.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "drivers/auth/api_keys.hpp"
#include "drivers/auth/jwt.hpp"
#include "wire/secret_file.hpp"

namespace gs {

struct Authenticator::Credentials {
  bool required = false;
  ApiKeys api_keys;
  JwtRules jwt;
  std::string agent_token_digest;  // empty: none
};

namespace {

Error refused(std::string message) { return {ErrorCode::Unauthenticated, std::move(message)}; }

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.message)};
}

Status read_api_keys(const std::string& path, ApiKeys& keys) {
  if (path.empty()) return ok_status();
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return text.error();
  Result<ApiKeys> parsed = ApiKeys::parse(*text);
  if (!parsed.ok()) return in_file(path, parsed.error());
  keys = std::move(*parsed);
  return ok_status();
}

Status read_jwt_secret(const std::string& path, std::string& secret) {
  if (path.empty()) return ok_status();
  Result<std::string> text = read_secret(path);
  if (!text.ok()) return text.error();
  if (text->size() < kMinSecretBytes)
    return invalid(fmt::format("{}: a secret of HS256 has at least 32 bytes", path));
  secret = std::move(*text);
  return ok_status();
}

Status read_jwks(const std::string& path, std::vector<VerifyKey>& keys) {
  if (path.empty()) return ok_status();
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return text.error();
  Result<std::vector<VerifyKey>> parsed = parse_jwks(*text);
  if (!parsed.ok()) return in_file(path, parsed.error());
  keys = std::move(*parsed);
  return ok_status();
}

Status read_agent_token(const std::string& path, std::string& digest) {
  if (path.empty()) return ok_status();
  const Result<std::string> token = read_secret(path);
  if (!token.ok()) return token.error();
  if (token->size() < 16) return invalid(path + ": a token of agents has at least 16 bytes");
  digest = sha256(*token);
  return ok_status();
}

// What follows "Bearer ", in any case of letters; none: another scheme.
std::optional<std::string_view> bearer(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() <= kScheme.size()) return std::nullopt;
  for (std::size_t i = 0; i < kScheme.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(header[i])) != kScheme[i]) return std::nullopt;
  header.remove_prefix(kScheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  while (header.ends_with(' ')) header.remove_suffix(1);
  return header;
}

bool looks_like_jwt(std::string_view text) {
  return std::count(text.begin(), text.end(), '.') == 2;
}

}  // namespace

Authenticator::Authenticator(std::shared_ptr<const Credentials> credentials)
    : credentials_(std::move(credentials)) {}
Authenticator::~Authenticator() = default;

Result<std::shared_ptr<const Authenticator::Credentials>> Authenticator::read(
    const Settings& settings) {
  auto credentials = std::make_shared<Credentials>();
  credentials->required = auth_required(settings);
  if (!credentials->required) return std::shared_ptr<const Credentials>(credentials);
  const AuthSettings& auth = settings.auth;
  credentials->jwt.issuer = auth.jwt_issuer;
  credentials->jwt.audience = auth.jwt_audience;
  if (Status s = read_api_keys(auth.api_keys_file, credentials->api_keys); !s.ok())
    return s.error();
  if (Status s = read_jwt_secret(auth.jwt_hs256_secret_file, credentials->jwt.secret); !s.ok())
    return s.error();
  if (Status s = read_jwks(auth.jwks_file, credentials->jwt.keys); !s.ok()) return s.error();
  if (Status s = read_agent_token(auth.agent_token_file, credentials->agent_token_digest); !s.ok())
    return s.error();
  return std::shared_ptr<const Credentials>(credentials);
}

Result<std::unique_ptr<Authenticator>> Authenticator::open(const Settings& settings) {
  auto credentials = read(settings);
  if (!credentials.ok()) return credentials.error();
  return std::unique_ptr<Authenticator>(new Authenticator(std::move(*credentials)));
}

Status Authenticator::reload(const Settings& settings) {
  auto credentials = read(settings);
  if (!credentials.ok()) return credentials.error();
  const std::lock_guard lock(mutex_);
  credentials_ = std::move(*credentials);
  return ok_status();
}

Result<Caller> Authenticator::identify(std::string_view authorization, std::string_view api_key,
                                       Instant now) const {
  std::shared_ptr<const Credentials> known;
  {
    const std::lock_guard lock(mutex_);
    known = credentials_;
  }
  if (!known->required) return local_admin();
  if (!authorization.empty() && !api_key.empty())
    return refused("both Authorization and X-API-Key are given; send one of them");
  std::string_view secret = api_key;
  if (!authorization.empty()) {
    const std::optional<std::string_view> token = bearer(authorization);
    if (!token) return refused("Authorization must be `Bearer` and a token or an API key");
    secret = *token;
  }
  if (secret.empty())
    return refused("who is this? Send X-API-Key, or Authorization: Bearer with a token");
  if (secret.size() > kMaxTokenBytes) return refused("longer than 8192 bytes");
  if (!known->agent_token_digest.empty() &&
      equal_in_constant_time(known->agent_token_digest, sha256(secret)))
    return Caller{.role = Role::Agent, .tenant = "", .name = "agent"};
  if (api_key.empty() && looks_like_jwt(secret)) return verify_jwt(known->jwt, secret, now);
  const std::optional<Caller> caller = known->api_keys.find(secret);
  return caller ? Result<Caller>(*caller) : refused("unknown API key");
}

}  // namespace gs
