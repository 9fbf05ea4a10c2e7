// Logs of a job's processes: a part of them, their end, or as they grow.
#include <deque>
#include <mutex>
#include <utility>

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
  explicit Incoming(const asio::any_io_executor& executor) : timer(executor) {}
  std::mutex mutex;
  std::deque<LogPiece> pieces;
  asio::steady_timer timer;
  std::unique_ptr<LogReading> reading;
  std::shared_ptr<Incoming> self;  // until the call is answered; then the connection holds it
  bool answered = false;           // only the thread that brings pieces looks at it
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

Result<LogAsk> log_ask(const HttpRequest& request) {
  LogAsk ask;
  constexpr std::int64_t kMany = 1'000'000'000'000'000;
  Result<bool> follow = flag_of(request, "follow");
  if (!follow) return follow.error();
  Result<std::int64_t> tail = number_of(request, "tail", 0, 0, kMany);
  if (!tail) return tail.error();
  Result<std::int64_t> offset = number_of(request, "offset", 0, 0, kMany);
  if (!offset) return offset.error();
  ask.follow = *follow;
  ask.tail_lines = *tail;
  ask.offset = *offset;
  return ask;
}

// Where the process of this rank writes its log; an error: nowhere.
Status find_log(const JobRow& row, std::int64_t rank, LogAsk& ask) {
  const Result<std::vector<Process>> processes = decode_processes(row.placement);
  if (processes)
    for (const Process& process : *processes)
      if (process.rank == rank) ask.node = process.node, ask.allocation = process.allocation;
  if (!ask.allocation.empty()) return ok_status();
  return not_found(row.attempt == 0
                       ? "job " + job_id(row.seq) + " has not started yet: no log"
                       : "job " + job_id(row.seq) + " has no rank " + std::to_string(rank));
}

}  // namespace

// The first piece decides: where there is no log the answer is an error, else the log begins.
void Rest::Impl::job_logs(const CallPtr& call) {
  Result<LogAsk> asked = log_ask(call->request());
  if (!asked) return fail(*call, asked.error());
  Result<std::int64_t> rank = number_of(call->request(), "rank", 0, 0, 1'000'000);
  if (!rank) return fail(*call, rank.error());
  with_job(call, [self = shared_from_this(), call, rank = *rank,
                  ask = *asked](const JobRow& row) mutable {
    if (Status s = find_log(row, rank, ask); !s) return self->fail(*call, s.error());
    auto incoming = std::make_shared<Incoming>(call->exchange->executor());
    const auto first = [self, call](const std::shared_ptr<Incoming>& pieces,
                                    const LogPiece& piece) {
      if (piece.error) return self->fail(*call, *piece.error);
      auto over = std::make_shared<bool>(false);
      self->finish(*call, HttpStream{"text/plain; charset=utf-8", {}, [pieces, over] {
                                       return next_piece(pieces, over);
                                     }});
    };
    incoming->self = incoming;
    incoming->reading =
        self->parts.logs.read(ask, [weak = std::weak_ptr(incoming), first](LogPiece piece) {
          const auto strong = weak.lock();
          if (!strong) return;
          if (!std::exchange(strong->answered, true)) {
            first(strong, piece);
            strong->self.reset();
          }
          push(strong, std::move(piece));
        });
  });
}

}  // namespace gs
