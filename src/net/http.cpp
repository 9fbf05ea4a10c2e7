#include "net/http.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>

namespace gs {
namespace asio = boost::asio;
namespace {

using Waiter = asio::any_completion_handler<void()>;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0 || high * 16 + low == 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      if (text[i] == '\0') return std::nullopt;
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto at = message.find(boost::beast::string_view(name.data(), name.size()));
  if (at == message.end()) return {};
  return {at->value().data(), at->value().size()};
}

const std::string* HttpRequest::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return &value;
  return nullptr;
}

std::string_view HttpRequest::method() const {
  const auto text = message.method_string();
  return {text.data(), text.size()};
}

Status parse_target(std::string_view target, HttpRequest& request) {
  target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  auto path = percent_decode(target.substr(0, mark), false);
  if (!path || path->empty() || path->front() != '/')
    return invalid("the path of the request is not valid");
  request.path = std::move(*path);
  request.query.clear();
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto key = percent_decode(pair.substr(0, equals), true);
    auto value =
        percent_decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true);
    if (!key || !value) return invalid("the query of the request is not valid");
    request.query.emplace_back(std::move(*key), std::move(*value));
  }
  return ok_status();
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

void Outbox::push(std::shared_ptr<Exchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    answered_.push_back(std::move(exchange));
    if (answered_.size() > 1) return;  // somebody has called already
  }
  asio::post(executor_, [self = shared_from_this()] { self->deliver(); });
}

void Outbox::deliver() {
  std::vector<std::shared_ptr<Exchange>> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(answered_);
  }
  for (const auto& exchange : arrived) exchange->arrived();
}

void Exchange::answer(Answer answer) {
  if (answered_.exchange(true)) return;
  answer_ = std::move(answer);
  outbox_->push(shared_from_this());
}

void Exchange::arrived() {
  arrived_ = true;
  Waiter waiter;
  waiter.swap(waiter_);
  if (waiter) waiter();
}

asio::awaitable<Exchange::Answer> Exchange::wait() {
  if (!arrived_) {
    // Swapped in: assigning one to another goes wrong in Boost 1.81.
    auto initiation = [this](auto handler) { Waiter(std::move(handler)).swap(waiter_); };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiation,
                                                                         asio::use_awaitable);
  }
  co_return std::move(answer_);
}

}  // namespace gs
