#include "net/client_failure.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/http/error.hpp>

namespace gs {
namespace asio = boost::asio;
namespace http = boost::beast::http;

Error unreachable(const HttpUrl& server, const std::string& what) {
  return {ErrorCode::Unavailable, "cannot reach " + server.text() + ": " + what};
}

Error too_slow(const HttpUrl& server, Duration limit) {
  const std::string time = limit.ms < 1000 ? std::to_string(limit.ms) + " ms"
                                           : std::to_string((limit.ms + 999) / 1000) + " s";
  return {ErrorCode::Unavailable, server.text() + " did not answer within " + time};
}

Error failure(const HttpUrl& server, const boost::system::error_code& error) {
  if (error == http::error::end_of_stream || error == asio::error::eof ||
      error == asio::ssl::error::stream_truncated || error == http::error::partial_message)
    return {ErrorCode::Unavailable, server.text() + " closed the connection"};
  if (error == http::error::body_limit)
    return {ErrorCode::Unavailable, "the answer of " + server.text() + " is too long"};
  return unreachable(server, error.message());
}

}  // namespace gs
