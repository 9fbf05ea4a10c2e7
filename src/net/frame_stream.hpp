// FrameStream: the stream under a WebSocket of Beast, through which many messages go in one write.
//
// Beast writes each message by itself, a system call for each; watchers of events get dozens at a
// time. So text frames are written here, put together, and what Beast has to say (pongs, the end)
// is put between them: whole frames only, in one order. For one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket/teardown.hpp>

namespace gs {

// Each line a text message, as a server frames it.
std::string text_frames(std::string_view lines);

template <typename Stream>
class FrameStream {
 public:
  // NOLINTBEGIN(readability-identifier-naming): Asio looks for these names
  using executor_type = typename Stream::executor_type;
  using next_layer_type = Stream;
  // NOLINTEND(readability-identifier-naming)

  explicit FrameStream(Stream stream) : state_(std::make_shared<State>(std::move(stream))) {}
  executor_type get_executor() { return state_->stream.get_executor(); }
  next_layer_type& next_layer() { return state_->stream; }
  const next_layer_type& next_layer() const { return state_->stream; }

  // Returns when all of it has been taken by the socket; false: it is closed.
  boost::asio::awaitable<bool> write(std::string frames) {
    const auto state = state_;
    state->waiting += frames;
    co_await flush(state);
    co_return !state->error;
  }

  // For Beast: its frames go behind those that are being written.
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    auto initiation = [state = state_](auto handler, const Buffers& bytes) {
      const std::string frame = boost::beast::buffers_to_string(bytes);
      state->waiting += frame;
      boost::asio::co_spawn(state->stream.get_executor(), flush(state), boost::asio::detached);
      boost::asio::post(
          state->stream.get_executor(),
          boost::beast::bind_front_handler(std::move(handler), state->error, frame.size()));
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        initiation, token, buffers);
  }
  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return state_->stream.async_read_some(buffers, std::forward<Token>(token));
  }

 private:
  struct State {
    explicit State(Stream the_stream)
        : stream(std::move(the_stream)), turn(stream.get_executor()) {}
    Stream stream;
    boost::asio::steady_timer turn;  // cancelled when a write is over
    std::string waiting;
    bool writing = false;
    boost::system::error_code error;
  };

  static boost::asio::awaitable<void> flush(std::shared_ptr<State> state) {
    boost::system::error_code ignored;
    auto over = boost::asio::redirect_error(boost::asio::use_awaitable, ignored);
    while (state->writing) {
      state->turn.expires_after(std::chrono::seconds(1));
      co_await state->turn.async_wait(over);
    }
    if (state->waiting.empty() || state->error) co_return;
    state->writing = true;
    const std::string frames = std::exchange(state->waiting, {});
    const auto buffer = boost::asio::buffer(frames);
    boost::system::error_code error;
    auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
    co_await boost::asio::async_write(state->stream, buffer, token);
    state->error = error;
    state->writing = false;
    state->turn.cancel();
  }

  std::shared_ptr<State> state_;
};

// How Beast ends it.
template <typename Stream>
void teardown(boost::beast::role_type role, FrameStream<Stream>& stream,
              boost::system::error_code& error) {
  using boost::beast::websocket::teardown;
  teardown(role, stream.next_layer(), error);
}
template <typename Stream, typename Handler>
void async_teardown(boost::beast::role_type role, FrameStream<Stream>& stream, Handler&& handler) {
  // Beast has two hooks for its own TLS stream, and clang can't tell which one is meant.
  if constexpr (requires { stream.next_layer().async_shutdown(std::forward<Handler>(handler)); }) {
    stream.next_layer().async_shutdown(std::forward<Handler>(handler));
  } else {
    using boost::beast::websocket::async_teardown;
    async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
  }
}

}  // namespace gs
