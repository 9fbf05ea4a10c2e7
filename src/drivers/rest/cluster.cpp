// The cluster: figures, nodes, GPUs; and the stream of events.
#include <charconv>

#include "drivers/rest/bodies.hpp"
#include "drivers/rest/impl.hpp"
#include "drivers/rest/openapi.hpp"

namespace gs {
namespace {

const NodeView* find_node(const ClusterView& view, const std::string& name) {
  for (const NodeView& node : *view.nodes)
    if (node.row.node.name == name) return &node;
  return nullptr;
}

bool wants(std::string_view header, std::string_view word) {
  return std::search(header.begin(), header.end(), word.begin(), word.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != header.end();
}

Result<std::uint64_t> event_id(const std::string& text) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size())
    return invalid("after must be the id of an event, a whole number, got '" + text + "'");
  return id;
}

constexpr int kBacklog = 10'000;  // recorded events that one who resumes is sent

struct EventAsk {
  EventFilter filter;  // of a stream
  EventQuery query;    // of a page
};

Result<EventAsk> event_ask(const HttpRequest& request) {
  EventAsk ask;
  std::string resume(request.header("Last-Event-ID"));
  if (const std::string* after = request.parameter("after")) resume = *after;
  if (!resume.empty()) {
    Result<std::uint64_t> id = event_id(resume);
    if (!id) return id.error();
    ask.query.after = *id;
  }
  if (const std::string* tenant = request.parameter("tenant_id"))
    ask.filter.tenant = ask.query.tenant = *tenant;
  if (const std::string* job = request.parameter("job_id")) {
    const auto seq = job_seq(*job);
    if (!seq) return invalid("job_id '" + *job + "' is not the id of a job");
    ask.filter.job = ask.query.job = *seq;
  }
  if (const std::string* type = request.parameter("type")) {
    ask.filter.types = {*type};
    ask.query.type = *type + "*";
  }
  Result<std::int64_t> limit = number_of(request, "limit", 100, 1, 10'000);
  if (!limit) return limit.error();
  ask.query.limit = static_cast<int>(*limit);
  return ask;
}

}  // namespace

void Rest::Impl::openapi(const CallPtr& call) {
  HttpResponse response;
  response.body = openapi_document();
  finish(*call, std::move(response));
}

void Rest::Impl::cluster_status(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  reply(*call, 200, cluster_body(*parts.service.view()));
}

void Rest::Impl::list_nodes(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  const auto view = parts.service.view();
  Json nodes = Json::array();
  for (const NodeView& node : *view->nodes) nodes.push_back(node_body(node, call->caller));
  const std::size_t total = nodes.size();
  reply_cached(*call, Json{{"nodes", std::move(nodes)}, {"total", total}});
}

void Rest::Impl::get_node(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  const auto view = parts.service.view();
  const NodeView* node = find_node(*view, call->captured.front());
  if (node == nullptr) return fail(*call, not_found("Node not found: " + call->captured.front()));
  reply_cached(*call, node_body(*node, call->caller));
}

void Rest::Impl::list_gpus(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  const auto view = parts.service.view();
  Json gpus = Json::array();
  for (const NodeView& node : *view->nodes)
    for (const GpuView& gpu : node.gpus) gpus.push_back(gpu_body(node, gpu, call->caller));
  const std::size_t total = gpus.size();
  reply_cached(*call, Json{{"gpus", std::move(gpus)}, {"total", total}});
}

void Rest::Impl::drain_node(const CallPtr& call) {
  if (Status s = may_change_cluster(call->caller); !s) return fail(*call, s.error());
  const std::string name = call->captured.front();
  Result<bool> keep = flag_of(call->request(), "keep_jobs");
  if (!keep) return fail(*call, keep.error());
  const bool drain = !*keep;
  write(
      call, [name, drain](Desk& desk) { return desk.cordon(name, true, drain); },
      [self = shared_from_this(), call, name, drain](const Done&) {
        self->reply(*call, 200,
                    Json{{"node", name},
                         {"message", drain ? "Node is being drained" : "Node takes no new jobs"}});
      });
}

void Rest::Impl::undrain_node(const CallPtr& call) {
  if (Status s = may_change_cluster(call->caller); !s) return fail(*call, s.error());
  const std::string name = call->captured.front();
  write(
      call, [name](Desk& desk) { return desk.cordon(name, false, false); },
      [self = shared_from_this(), call, name](const Done&) {
        self->reply(*call, 200, Json{{"node", name}, {"message", "Node takes jobs again"}});
      });
}

void Rest::Impl::delete_node(const CallPtr& call) {
  if (Status s = may_change_cluster(call->caller); !s) return fail(*call, s.error());
  const std::string name = call->captured.front();
  write(
      call, [name](Desk& desk) { return desk.remove_node(name); },
      [self = shared_from_this(), call, name](const Done&) {
        self->reply(*call, 200, Json{{"node", name}, {"message", "Node removed"}});
      });
}

// ---------------------------------------------------------------- events

// WebSocket where the request asks for an upgrade, server-sent events where it accepts them, else
// a page of what is recorded.
void Rest::Impl::events(const CallPtr& call) {
  const HttpRequest& request = call->request();
  Result<EventAsk> asked = event_ask(request);
  if (!asked) return fail(*call, asked.error());
  EventAsk ask = std::move(*asked);
  if (const auto only = only_tenant(call->caller)) {
    if (!ask.filter.tenant.empty() && ask.filter.tenant != *only)
      return fail(*call, may_see(call->caller, ask.filter.tenant).error());
    ask.filter.tenant = ask.query.tenant = *only;
    ask.filter.of_tenant_only = true;
  }
  const bool socket = wants(request.header("Upgrade"), "websocket");
  if (socket || wants(request.header("Accept"), "text/event-stream"))
    return watch_events(call, ask.filter, ask.query, socket);
  read(
      call, [query = ask.query](Reader& reader) { return reader.events(query); },
      [self = shared_from_this(), call](const std::vector<EventRow>& rows) {
        Json list = Json::array();
        for (const EventRow& row : rows)
          list.push_back(Json::parse(event_json(row), nullptr, false));
        self->reply(*call, 200, Json{{"events", std::move(list)}});
      });
}

// Who resumes from before what is kept in memory (a restart lies between) gets what is recorded of
// it first.
void Rest::Impl::watch_events(const CallPtr& call, const EventFilter& filter, EventQuery query,
                              bool socket) {
  query.limit = kBacklog;
  const std::uint64_t from = parts.service.events().kept_after();
  const bool from_record = query.after > 0 && query.after < from;
  read(
      call,
      [query, from_record](Reader& reader) -> Result<std::vector<EventRow>> {
        if (!from_record) return std::vector<EventRow>{};
        return reader.events(query);
      },
      [self = shared_from_this(), call, filter, socket, from,
       after = query.after](const std::vector<EventRow>& rows) {
        std::vector<EventRow> backlog;
        for (const EventRow& row : rows)
          if (row.id <= from) backlog.push_back(row);
        NextPiece next =
            self->watchers.watch({filter, after, !socket}, backlog, call->exchange->executor());
        if (socket) return self->finish(*call, WebSocketSession{std::move(next), {}});
        self->finish(*call, HttpStream{"text/event-stream", {}, std::move(next)});
      });
}

}  // namespace gs
