#include "drivers/store/postgres.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <poll.h>

namespace gs::store {
namespace {

using Clock = std::chrono::steady_clock;

class PostgresRow final : public Row {
 public:
  PostgresRow(const Libpq& pq, const PGresult* answer, int row)
      : pq_(pq), answer_(answer), row_(row) {}
  bool is_null(int column) const override { return pq_.getisnull(answer_, row_, column) != 0; }
  std::int64_t integer(int column) const override {
    const std::string_view value = text(column);
    if (value == "t") return 1;
    std::int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number;
  }
  double real(int column) const override {
    return std::strtod(pq_.getvalue(answer_, row_, column), nullptr);
  }
  std::string_view text(int column) const override {
    return {pq_.getvalue(answer_, row_, column),
            static_cast<std::size_t>(pq_.getlength(answer_, row_, column))};
  }

 private:
  const Libpq& pq_;
  const PGresult* answer_;
  int row_;
};

// The length of the character at the beginning, 0: it is none.
std::size_t character_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = at(1);
  const bool refused = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                       (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return refused ? 0 : length;
}

std::string text_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) {
    char buffer[64];
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, *real).ptr};
  }
  return valid_text(std::get<std::string>(value));
}

bool is_transient(std::string_view sql_state) {
  // Connection, resources, the operator's doing, a rollback that asks to be tried again.
  for (const char* kind : {"08", "53", "57", "58", "40", "55P03"})
    if (sql_state.starts_with(kind)) return true;
  return false;
}

}  // namespace

std::string valid_text(std::string_view text) {
  const std::string_view all = text;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) break;
    text.remove_prefix(length);
  }
  std::string valid(all.substr(0, all.size() - text.size()));
  if (text.empty()) return valid;  // nearly always
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0)
      valid += '?';
    else
      valid += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

Status PostgresSession::connect() {
  if (connection_ != nullptr) return ok_status();
  if (Clock::now() < next_attempt_)
    return Error{ErrorCode::Unavailable, "PostgreSQL is out of reach: " + last_failure_};
  Status status = connect_now();
  if (status && prepare_) status = prepare_(*this);
  if (status) {
    failures_ = 0;
    return status;
  }
  disconnect();
  failures_ = std::min(failures_ + 1, 6);
  next_attempt_ = Clock::now() + std::chrono::milliseconds(10 << failures_);
  last_failure_ = status.error().message;
  return status;
}

Status PostgresSession::connect_now() {
  const Result<const Libpq*> library = libpq();
  if (!library) return library.error();
  pq_ = *library;
  const std::string port = std::to_string(settings_.port);
  const std::string timeout = std::to_string(std::max(settings_.connect_timeout_s, 2));
  const std::string silence = std::to_string(settings_.answer_timeout_ms);
  const std::pair<const char*, const char*> all[] = {
      {"host", settings_.host.c_str()},
      {"port", port.c_str()},
      {"user", settings_.user.c_str()},
      {"password", settings_.password.c_str()},
      {"dbname", settings_.database.c_str()},
      {"sslmode", settings_.sslmode.c_str()},
      {"connect_timeout", timeout.c_str()},
      {"tcp_user_timeout", silence.c_str()},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "2"},
      {"keepalives_count", "3"},
      {"client_encoding", "UTF8"},
      {"application_name", "gpu-scheduler"},
      {"options", read_only_
                      ? "-c default_transaction_read_only=on -c jit=off"
                      : "-c synchronous_commit=on -c client_min_messages=warning -c jit=off"}};
  std::vector<const char*> names, values;
  for (const auto& [name, value] : all) {
    if (*value == '\0') continue;
    names.push_back(name);
    values.push_back(value);
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  connection_ = pq_->connectdb_params(names.data(), values.data(), 0);
  if (connection_ == nullptr) return Error{ErrorCode::Unavailable, "PostgreSQL: no memory"};
  if (pq_->status(connection_) != CONNECTION_OK) return lost("connect");
  // Its own habit is to write what the server remarks to stderr.
  pq_->set_notice_processor(
      connection_, [](void*, const char*) {}, nullptr);
  if (pq_->set_nonblocking(connection_, 1) != 0) return lost("connect");
  return ok_status();
}

void PostgresSession::disconnect() {
  if (connection_ != nullptr) pq_->finish(connection_);
  connection_ = nullptr;
}

int PostgresSession::backend_pid() const {
  return connection_ == nullptr ? 0 : pq_->backend_pid(connection_);
}

Status PostgresSession::lost(const std::string& what) {
  std::string message = connection_ == nullptr ? "" : pq_->error_message(connection_);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  disconnect();
  return Error{ErrorCode::Unavailable,
               "PostgreSQL: " + (message.empty() ? what + ": no answer" : message)};
}

Error PostgresSession::error_of(const PGresult* result) const {
  const char* state = pq_->result_error_field(result, PG_DIAG_SQLSTATE);
  std::string message = pq_->result_error_message(result);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return {state == nullptr || is_transient(state) ? ErrorCode::Unavailable : ErrorCode::Internal,
          "PostgreSQL: " + message};
}

Clock::time_point PostgresSession::deadline() const {
  return Clock::now() + std::chrono::milliseconds(settings_.answer_timeout_ms);
}

Status PostgresSession::wait(short events, Clock::time_point deadline) {
  pollfd entry{pq_->socket(connection_), events, 0};
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if (left <= 0) return lost("timeout");
  const int ready = ::poll(&entry, 1, static_cast<int>(left));
  if (ready < 0 && errno != EINTR) return lost("poll");
  return ok_status();
}

Status PostgresSession::send_all(Clock::time_point deadline) {
  while (true) {
    const int left = pq_->flush(connection_);
    if (left < 0) return lost("send");
    if (left == 0) return ok_status();
    if (Status status = wait(POLLIN | POLLOUT, deadline); !status) return status;
    if (pq_->consume_input(connection_) == 0) return lost("receive");
  }
}

Result<PostgresSession::Answer> PostgresSession::next_answer(Clock::time_point deadline) {
  while (pq_->is_busy(connection_) != 0) {
    if (Status status = wait(POLLIN, deadline); !status) return status.error();
    if (pq_->consume_input(connection_) == 0) return lost("receive").error();
  }
  return Answer(pq_->get_result(connection_), Clear{pq_});
}

Status PostgresSession::query(const std::string& sql, const std::vector<Value>& values,
                              const std::function<void(const Row&)>& each) {
  const bool was_connected = is_connected();
  bool has_rows = false;
  const auto note = [&](const Row& row) {
    has_rows = true;
    each(row);
  };
  Status status = query_once(sql, values, note);
  // A connection that was idle may have been closed long ago. What only reads is asked again.
  if (!status && was_connected && !is_connected() && read_only_ && !has_rows)
    status = query_once(sql, values, each);
  return status;
}

Status PostgresSession::query_once(const std::string& sql, const std::vector<Value>& values,
                                   const std::function<void(const Row&)>& each) {
  if (Status connected = connect(); !connected) return connected;
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(text_of(value));
  std::vector<const char*> raw;
  for (const std::string& text : texts) raw.push_back(text.c_str());
  if (pq_->send_query_params(connection_, sql.c_str(), static_cast<int>(raw.size()), nullptr,
                             raw.data(), nullptr, nullptr, 0) == 0)
    return lost("send");
  const Clock::time_point until = deadline();
  if (Status sent = send_all(until); !sent) return sent;
  Status status = ok_status();
  changes_ = 0;
  while (true) {
    Result<Answer> answer = next_answer(until);
    if (!answer) return answer.error();
    if (!*answer) break;
    const PGresult* result = answer->get();
    const ExecStatusType kind = pq_->result_status(result);
    if (kind != PGRES_TUPLES_OK && kind != PGRES_COMMAND_OK) {
      status = error_of(result);
      continue;
    }
    changes_ = std::atoll(pq_->cmd_tuples(const_cast<PGresult*>(result)));
    for (int row = 0; row < pq_->ntuples(result); ++row) each(PostgresRow(*pq_, result, row));
  }
  if (pq_->status(connection_) == CONNECTION_OK) return status;
  const Status gone = lost("receive");
  return status ? gone : status;
}

Status PostgresSession::script(const std::string& sql) {
  if (Status connected = connect(); !connected) return connected;
  const Answer answer(pq_->exec(connection_, sql.c_str()), Clear{pq_});
  if (!answer) return lost("send");
  const ExecStatusType kind = pq_->result_status(answer.get());
  if (kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK || kind == PGRES_EMPTY_QUERY)
    return ok_status();
  const Error error = error_of(answer.get());
  if (pq_->status(connection_) != CONNECTION_OK) disconnect();
  return error;
}

Status PostgresSession::prepare(const std::string& name, const std::string& sql,
                                const std::vector<Oid>& types) {
  const Answer answer(pq_->prepare(connection_, name.c_str(), sql.c_str(),
                                   static_cast<int>(types.size()), types.data()),
                      Clear{pq_});
  if (!answer) return lost("prepare");
  if (pq_->result_status(answer.get()) == PGRES_COMMAND_OK) return ok_status();
  return error_of(answer.get());
}

Status PostgresSession::run_pipeline(const std::vector<Prepared>& statements,
                                     std::string& sql_state) {
  if (Status connected = connect(); !connected) return connected;
  if (pq_->enter_pipeline_mode(connection_) == 0) return lost("pipeline");
  const auto send = [&](const std::string& name, const std::vector<std::string>& values) {
    std::vector<const char*> raw;
    std::vector<int> lengths, formats(values.size(), 1);
    for (const std::string& value : values) {
      raw.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
    }
    return pq_->send_query_prepared(connection_, name.c_str(), static_cast<int>(raw.size()),
                                    raw.data(), lengths.data(), formats.data(), 0) != 0;
  };
  bool sent = send("begin", {});
  for (const Prepared& statement : statements)
    sent = sent && send(statement.name, statement.values);
  sent = sent && send("commit", {}) && pq_->pipeline_sync(connection_) != 0;
  if (!sent) return lost("send");
  Status status = read_answers(sql_state);
  if (!is_connected()) return status;
  if (pq_->exit_pipeline_mode(connection_) == 0) return lost("pipeline");
  if (!status) (void)script("ROLLBACK");
  return status;
}

Status PostgresSession::read_answers(std::string& sql_state) {
  const Clock::time_point until = deadline();
  if (Status sent = send_all(until); !sent) return sent;
  Status status = ok_status();
  while (true) {
    Result<Answer> answer = next_answer(until);
    if (!answer) return answer.error();
    if (!*answer) {  // the end of one statement's answers
      if (pq_->status(connection_) != CONNECTION_OK) return lost("receive");
      continue;
    }
    const PGresult* result = answer->get();
    const ExecStatusType kind = pq_->result_status(result);
    if (kind == PGRES_PIPELINE_SYNC) return status;
    if (kind != PGRES_FATAL_ERROR || !status) continue;
    const char* state = pq_->result_error_field(result, PG_DIAG_SQLSTATE);
    sql_state = state == nullptr ? "" : state;
    status = error_of(result);
  }
}

}  // namespace gs::store
