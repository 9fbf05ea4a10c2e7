#include "net/answer_parser.hpp"

#include <algorithm>

#include <boost/beast/core/string.hpp>

namespace gs {

namespace {
constexpr std::uint64_t kReserveBytes = 4U << 20;  // more is believed when it has come
}

void AnswerParser::on_field_impl(boost::beast::http::field, Text name, Text value, ErrorCode&) {
  const auto is_this = [&](const std::string& kept) { return boost::beast::iequals(kept, name); };
  if (!kept_headers_.empty() && std::none_of(kept_headers_.begin(), kept_headers_.end(), is_this))
    return;
  answer_.headers.emplace_back(std::string(name), std::string(value));
}

void AnswerParser::on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) {
  if (length && piece_ == nullptr)
    answer_.body.reserve(static_cast<std::size_t>(std::min(*length, kReserveBytes)));
}

std::size_t AnswerParser::take(Text body) {
  if (piece_ != nullptr && answer_.ok())
    (*piece_)({body.data(), body.size()});
  else
    answer_.body.append(body.data(), body.size());
  return body.size();
}

}  // namespace gs
