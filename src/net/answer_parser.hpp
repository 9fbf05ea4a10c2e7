// Reads one HTTP answer from the bytes that come, without copies: the body goes to where the
// caller wants it, and of the headers only those that somebody will ask for are kept.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/beast/http/basic_parser.hpp>

#include "net/http_client.hpp"

namespace gs {

class AnswerParser final : public boost::beast::http::basic_parser<false> {
 public:
  // Gets pieces of the body of a good answer (2xx); other bodies are kept in the answer.
  using Piece = std::function<void(std::string_view)>;

  // `kept_headers` must live as long as the parser; empty: all are kept. `piece` may be null.
  AnswerParser(const std::vector<std::string>& kept_headers, const Piece* piece)
      : kept_headers_(kept_headers), piece_(piece) {}

  bool is_informational() const { return answer_.status / 100 == 1; }
  ClientResponse& answer() { return answer_; }

 private:
  using ErrorCode = boost::beast::error_code;
  using Text = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb, Text, Text, int, ErrorCode&) override {}
  void on_response_impl(int code, Text, int, ErrorCode&) override { answer_.status = code; }
  void on_field_impl(boost::beast::http::field, Text name, Text value, ErrorCode&) override;
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) override;
  std::size_t on_body_impl(Text body, ErrorCode&) override { return take(body); }
  void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode&) override {
    return take(body);
  }
  void on_finish_impl(ErrorCode&) override {}

  std::size_t take(Text body);

  const std::vector<std::string>& kept_headers_;
  const Piece* piece_;
  ClientResponse answer_;
};

}  // namespace gs
