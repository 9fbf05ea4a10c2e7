// The inside of Rest, shared by its files: one file per family of routes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "drivers/rest/rest.hpp"
#include "drivers/rest/streams.hpp"
#include "wire/json_reader.hpp"

namespace gs {

// One request on its way through a route.
struct Call {
  std::shared_ptr<Exchange> exchange;
  Caller caller;
  std::vector<std::string> captured;  // the parts of the path that stand for {names}
  const char* route = "";

  const HttpRequest& request() const { return exchange->request; }
};
using CallPtr = std::shared_ptr<Call>;

// An answer to be sent when what it tells of is durable.
struct Answered {
  int status = 201;
  std::string body;
};

// "true" or "false"; false where it is not given.
Result<bool> flag_of(const HttpRequest& request, const char* name);
// A whole number within bounds; `usual` where it is not given.
Result<std::int64_t> number_of(const HttpRequest& request, const char* name, std::int64_t usual,
                               std::int64_t low, std::int64_t high);

struct Rest::Impl : std::enable_shared_from_this<Rest::Impl> {
  Impl(RestParts the_parts, RestOptions the_options)
      : parts(std::move(the_parts)),
        options(std::move(the_options)),
        readers(static_cast<std::size_t>(options.reader_threads)),
        watchers(parts.service.events()) {}

  RestParts parts;
  RestOptions options;
  boost::asio::thread_pool readers;
  EventWatchers watchers;
  Family<Counter>* requests = nullptr;
  Family<Histogram>* latency = nullptr;

  // --- answering ---
  void reply(const Call& call, int status, const Json& body);
  void reply_text(const Call& call, int status, std::string body);
  void reply_cached(const Call& call, const Json& body);  // with an ETag
  void fail(const Call& call, const Error& error);
  void finish(const Call& call, HttpResponse response);
  void finish(const Call& call, HttpStream stream);
  void finish(const Call& call, WebSocketSession session);
  void note(const Call& call, int status);
  void allow_origin(const Call& call, HttpHeaders& headers) const;

  // Runs f(Desk&) in a turn; `done` gets its value when it is durable. Errors are answered here.
  template <typename F, typename Done>
  void write(const CallPtr& call, F f, Done done) {
    auto self = shared_from_this();
    auto finish = [self, call, done = std::move(done)](auto result) mutable {
      if (result)
        done(*result);
      else
        self->fail(*call, result.error());
    };
    if (!parts.service.ask(std::move(f), std::move(finish)))
      fail(*call, Error{ErrorCode::QueueFull, "the server is busy; try again in a moment"});
  }

  // Runs f(Reader&) -> Result<T> on a reading thread.
  template <typename F, typename Done>
  void read(const CallPtr& call, F f, Done done) {
    auto self = shared_from_this();
    boost::asio::post(readers, [self, call, f, done] {
      auto result = f(self->parts.reader);
      if (result)
        done(*result);
      else
        self->fail(*call, result.error());
    });
  }

  // --- routes ---
  void health(const CallPtr& call);
  void ready(const CallPtr& call);
  void openapi(const CallPtr& call);
  void cluster_status(const CallPtr& call);

  void submit_job(const CallPtr& call);
  void submit_batch(const CallPtr& call);
  void list_jobs(const CallPtr& call);
  void get_job(const CallPtr& call);
  void cancel_job(const CallPtr& call);
  void hold_job(const CallPtr& call);
  void release_job(const CallPtr& call);
  void requeue_job(const CallPtr& call);
  void change_job(const CallPtr& call);
  void explain_job(const CallPtr& call);
  void job_events(const CallPtr& call);
  void job_logs(const CallPtr& call);

  void create_tenant(const CallPtr& call);
  void list_tenants(const CallPtr& call);
  void get_tenant(const CallPtr& call);
  void update_tenant(const CallPtr& call);
  void delete_tenant(const CallPtr& call);
  void tenant_usage(const CallPtr& call);
  void usage(const CallPtr& call);

  void list_nodes(const CallPtr& call);
  void get_node(const CallPtr& call);
  void list_gpus(const CallPtr& call);
  void drain_node(const CallPtr& call);
  void undrain_node(const CallPtr& call);
  void delete_node(const CallPtr& call);

  void events(const CallPtr& call);
  void watch_events(const CallPtr& call, const EventFilter& filter, EventQuery query, bool socket);

  // --- shared by routes ---
  void dry_run(const CallPtr& call, const JobSpec& spec);
  // Submits and answers; with an Idempotency-Key of this tenant once only, and with the same words
  // again for those who repeat it.
  using Submit = std::function<Result<Answered>(Desk&)>;
  void submit_once(const CallPtr& call, const std::string& tenant, Submit submit);
  // Finds the job of the path, if the caller may see it; others look as if they did not exist.
  void with_job(const CallPtr& call, std::function<void(const JobRow&)> then);
  void change(const CallPtr& call, std::function<Status(Desk&, std::int64_t)> act,
              std::string message);
  void read_usage(const CallPtr& call, UsageQuery query);
};

}  // namespace gs
