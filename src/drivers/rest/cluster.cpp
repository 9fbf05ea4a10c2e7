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
    return invalid("the id of an event is a whole number, got '" + text + "'");
  return id;
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
  for (const NodeView& node : *view->nodes) nodes.push_back(node_body(node));
  const std::size_t total = nodes.size();
  reply_cached(*call, Json{{"nodes", std::move(nodes)}, {"total", total}});
}

void Rest::Impl::get_node(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  const auto view = parts.service.view();
  const NodeView* node = find_node(*view, call->captured.front());
  if (node == nullptr) return fail(*call, not_found("Node not found: " + call->captured.front()));
  reply_cached(*call, node_body(*node));
}

void Rest::Impl::list_gpus(const CallPtr& call) {
  if (Status s = may_see_cluster(call->caller); !s) return fail(*call, s.error());
  const auto view = parts.service.view();
  Json gpus = Json::array();
  for (const NodeView& node : *view->nodes)
    for (const GpuView& gpu : node.gpus) gpus.push_back(gpu_body(node, gpu));
  const std::size_t total = gpus.size();
  reply_cached(*call, Json{{"gpus", std::move(gpus)}, {"total", total}});
}

void Rest::Impl::drain_node(const CallPtr& call) {
  if (Status s = may_change_cluster(call->caller); !s) return fail(*call, s.error());
  const std::string name = call->captured.front();
  const std::string* keep = call->request().parameter("keep_jobs");
  const bool drain = keep == nullptr || *keep != "true";
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
  EventFilter filter;
  EventQuery query;
  std::uint64_t after = 0;
  std::string resume(request.header("Last-Event-ID"));
  for (const auto& [key, value] : request.query) {
    if (key == "after")
      resume = value;
    else if (key == "tenant_id")
      filter.tenant = query.tenant = value;
    else if (key == "job_id")
      filter.job = query.job = job_seq(value).value_or(-1);
    else if (key == "type")
      filter.types.push_back(value), query.type = value + "*";
    else if (key == "limit")
      query.limit = std::clamp(std::atoi(value.c_str()), 1, 10'000);
    else
      return fail(*call, invalid("'" + key + "' is not a parameter of events"));
  }
  if (!resume.empty()) {
    Result<std::uint64_t> id = event_id(resume);
    if (!id) return fail(*call, id.error());
    after = *id;
  }
  if (const auto only = only_tenant(call->caller)) {
    if (!filter.tenant.empty() && filter.tenant != *only)
      return fail(*call, may_see(call->caller, filter.tenant).error());
    filter.tenant = query.tenant = *only;
    filter.of_tenant_only = true;
  }
  const auto& executor = call->exchange->executor();
  if (wants(request.header("Upgrade"), "websocket")) {
    WebSocketSession session;
    session.next = watchers.watch(filter, after, false, executor);
    return call->exchange->answer(std::move(session));
  }
  if (wants(request.header("Accept"), "text/event-stream")) {
    HttpStream stream;
    stream.content_type = "text/event-stream";
    stream.next = watchers.watch(filter, after, true, executor);
    return call->exchange->answer(std::move(stream));
  }
  query.after = after;
  read(
      call, [query](Reader& reader) { return reader.events(query); },
      [self = shared_from_this(), call](const std::vector<EventRow>& rows) {
        Json list = Json::array();
        for (const EventRow& row : rows)
          list.push_back(Json::parse(event_json(row), nullptr, false));
        self->reply(*call, 200, Json{{"events", std::move(list)}});
      });
}

}  // namespace gs
