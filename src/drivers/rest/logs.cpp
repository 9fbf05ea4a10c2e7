// Logs of a job's processes: a part of them, their end, or as they grow.
#include <charconv>
#include <deque>
#include <mutex>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "drivers/rest/impl.hpp"
#include "wire/job_json.hpp"

namespace gs {
namespace asio = boost::asio;
namespace {

// Pieces come from another thread and are pulled by the connection.
struct Incoming {
  explicit Incoming(asio::any_io_executor executor) : timer(std::move(executor)) {}
  std::mutex mutex;
  std::deque<LogPiece> pieces;
  asio::steady_timer timer;
  std::unique_ptr<LogReading> reading;
};

void push(const std::shared_ptr<Incoming>& incoming, LogPiece piece) {
  {
    const std::lock_guard lock(incoming->mutex);
    incoming->pieces.push_back(std::move(piece));
  }
  asio::post(incoming->timer.get_executor(), [incoming] { incoming->timer.cancel(); });
}

std::optional<LogPiece> pop(Incoming& incoming) {
  const std::lock_guard lock(incoming.mutex);
  if (incoming.pieces.empty()) return std::nullopt;
  LogPiece piece = std::move(incoming.pieces.front());
  incoming.pieces.pop_front();
  return piece;
}

asio::awaitable<std::optional<std::string>> next_piece(std::shared_ptr<Incoming> incoming,
                                                       std::shared_ptr<bool> over) {
  for (;;) {
    if (*over) co_return std::nullopt;
    incoming->timer.expires_after(std::chrono::hours(1));
    if (std::optional<LogPiece> piece = pop(*incoming)) {
      *over = piece->end || piece->error;
      if (piece->error) co_return "\n[" + piece->error->message + "]\n";
      if (!piece->data.empty()) co_return std::move(piece->data);
      continue;
    }
    boost::system::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await incoming->timer.async_wait(token);
  }
}

Result<std::int64_t> number_in(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    return invalid(name + " must be a whole number from 0 on");
  return value;
}

struct LogQuery {
  LogAsk ask;
  std::int64_t rank = 0;
};

Result<LogQuery> log_query(const HttpRequest& request) {
  LogQuery query;
  for (const auto& [key, value] : request.query) {
    if (key == "follow") {
      query.ask.follow = value == "true" || value == "1";
      continue;
    }
    Result<std::int64_t> number = number_in(key, value);
    if (key == "tail" && number)
      query.ask.tail_lines = *number;
    else if (key == "offset" && number)
      query.ask.offset = *number;
    else if (key == "rank" && number)
      query.rank = *number;
    else if (key != "tail" && key != "offset" && key != "rank")
      return invalid("'" + key + "' is not a parameter of logs");
    else
      return number.error();
  }
  return query;
}

}  // namespace

void Rest::Impl::job_logs(const CallPtr& call) {
  Result<LogQuery> query = log_query(call->request());
  if (!query) return fail(*call, query.error());
  with_job(call, [self = shared_from_this(), call, query = *query](const JobRow& row) {
    const Result<std::vector<Process>> processes = decode_processes(row.placement);
    LogAsk ask = query.ask;
    if (processes)
      for (const Process& process : *processes)
        if (process.rank == query.rank)
          ask.node = process.node, ask.allocation = process.allocation;
    if (ask.allocation.empty())
      return self->fail(
          *call,
          not_found(row.attempt == 0
                        ? "job " + job_id(row.seq) + " has not started yet: no log"
                        : "job " + job_id(row.seq) + " has no rank " + std::to_string(query.rank)));
    auto incoming = std::make_shared<Incoming>(call->exchange->executor());
    incoming->reading =
        self->parts.logs.read(ask, [weak = std::weak_ptr(incoming)](LogPiece piece) {
          if (const auto strong = weak.lock()) push(strong, std::move(piece));
        });
    auto over = std::make_shared<bool>(false);
    HttpStream stream;
    stream.content_type = "text/plain; charset=utf-8";
    stream.next = [incoming, over] { return next_piece(incoming, over); };
    call->exchange->answer(std::move(stream));
  });
}

}  // namespace gs
