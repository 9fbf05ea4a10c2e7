#include "net/http.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>

namespace gs {
namespace asio = boost::asio;
namespace {

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

void Exchange::answer(Answer answer) {
  std::function<void(Answer)> waiter;
  {
    const std::lock_guard lock(mutex_);
    if (answered_) return;
    answered_ = true;
    if (!waiter_) {
      answer_ = std::move(answer);
      return;
    }
    waiter = std::move(waiter_);
  }
  waiter(std::move(answer));
}

asio::awaitable<Exchange::Answer> Exchange::wait() {
  {
    const std::lock_guard lock(mutex_);
    if (answer_) co_return std::move(*answer_);
  }
  auto self = shared_from_this();
  auto initiation = [self](auto handler) {
    // std::function wants something that can be copied.
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    auto complete = [self, shared](Answer answer) {
      asio::post(self->executor_,
                 [shared, value = std::move(answer)]() mutable { (*shared)(std::move(value)); });
    };
    std::optional<Answer> early;
    {
      const std::lock_guard lock(self->mutex_);
      if (self->answer_)
        early = std::move(*self->answer_);
      else
        self->waiter_ = complete;
    }
    if (early) complete(std::move(*early));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Answer)>(
      initiation, asio::use_awaitable);
}

}  // namespace gs
