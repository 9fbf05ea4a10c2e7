// The bare limit: a minimal Beast server that commits one small row per request to SQLite, all the
// requests that have come meanwhile in one transaction. Nothing is decoded, decided or remembered.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <sqlite3.h>

namespace gs::bench {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

class BareServer {
 public:
  explicit BareServer(const std::string& path) : acceptor_(context_) {
    sqlite3_open(path.c_str(), &db_);
    for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
                            "CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, body TEXT)"})
      sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
    sqlite3_prepare_v2(db_, "INSERT INTO rows (body) VALUES (?)", -1, &insert_, nullptr);
    acceptor_.open(asio::ip::tcp::v4());
    acceptor_.bind({asio::ip::address_v4::loopback(), 0});
    acceptor_.listen();
    accept();
    io_ = std::thread([this] { context_.run(); });
    writer_ = std::thread([this] { write_loop(); });
  }
  ~BareServer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    writer_.join();
    context_.stop();
    io_.join();
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
  }
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  struct Session : std::enable_shared_from_this<Session> {
    Session(BareServer& the_server, asio::ip::tcp::socket the_socket)
        : server(the_server), stream(std::move(the_socket)) {}
    void read() {
      request = {};
      http::async_read(stream, buffer, request,
                       [self = shared_from_this()](beast::error_code error, std::size_t) {
                         if (!error) self->server.enqueue(self);
                       });
    }
    void reply() {
      response = {http::status::created, 11};
      response.set(http::field::content_type, "application/json");
      response.body() = R"({"status":"submitted"})";
      response.prepare_payload();
      http::async_write(stream, response,
                        [self = shared_from_this()](beast::error_code error, std::size_t) {
                          if (!error) self->read();
                        });
    }
    BareServer& server;
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    http::response<http::string_body> response;
  };

  void accept() {
    acceptor_.async_accept([this](beast::error_code error, asio::ip::tcp::socket socket) {
      if (error) return;
      beast::error_code ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      std::make_shared<Session>(*this, std::move(socket))->read();
      accept();
    });
  }
  void enqueue(std::shared_ptr<Session> session) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(session));
    }
    wake_.notify_one();
  }
  void write_loop() {
    std::vector<std::shared_ptr<Session>> batch;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (stopping_) return;
        batch.swap(waiting_);
      }
      sqlite3_exec(db_, "BEGIN", nullptr, nullptr, nullptr);
      for (const auto& session : batch) {
        const std::string& body = session->request.body();
        sqlite3_bind_text(insert_, 1, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
        sqlite3_step(insert_);
        sqlite3_reset(insert_);
      }
      sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr);
      asio::post(context_, [done = std::move(batch)] {
        for (const auto& session : done) session->reply();
      });
      batch = {};
    }
  }

  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Session>> waiting_;
  bool stopping_ = false;
  std::thread io_, writer_;
};

}  // namespace gs::bench
