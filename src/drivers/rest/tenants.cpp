// Tenants and what they have used.
#include "drivers/rest/bodies.hpp"
#include "drivers/rest/impl.hpp"
#include "wire/clock_json.hpp"
#include "wire/tenant_json.hpp"

namespace gs {

void Rest::Impl::create_tenant(const CallPtr& call) {
  if (Status s = may_change_tenants(call->caller); !s) return fail(*call, s.error());
  Result<Json> body = parse_json(call->request().body());
  if (!body) return fail(*call, body.error());
  Result<TenantSpec> spec = read_tenant(*body);
  if (!spec) return fail(*call, spec.error());
  write(
      call, [spec = *spec](Desk& desk) { return desk.create_tenant(spec); },
      [self = shared_from_this(), call](const TenantRow& row) {
        self->reply(*call, 201, tenant_body(row));
      });
}

void Rest::Impl::list_tenants(const CallPtr& call) {
  read(
      call, [](Reader& reader) { return reader.tenants(); },
      [self = shared_from_this(), call](const std::vector<TenantRow>& rows) {
        Json tenants = Json::array();
        for (const TenantRow& row : rows)
          if (may_see(call->caller, tenant_id(row.seq))) tenants.push_back(tenant_body(row));
        const std::size_t total = tenants.size();
        self->reply_cached(*call, Json{{"tenants", std::move(tenants)}, {"total", total}});
      });
}

void Rest::Impl::get_tenant(const CallPtr& call) {
  const std::string id = call->captured.front();
  const auto seq = tenant_seq(id);
  const Error missing = not_found("Tenant not found: " + id);
  if (!seq || !may_see(call->caller, id)) return fail(*call, missing);
  read(
      call, [seq](Reader& reader) { return reader.tenant(*seq); },
      [self = shared_from_this(), call, missing](const std::optional<TenantRow>& row) {
        if (!row || !row->active) return self->fail(*call, missing);
        self->reply_cached(*call, tenant_body(*row));
      });
}

// PUT replaces all that is set; PATCH only what it names.
void Rest::Impl::update_tenant(const CallPtr& call) {
  if (Status s = may_change_tenants(call->caller); !s) return fail(*call, s.error());
  const std::string id = call->captured.front();
  const auto seq = tenant_seq(id);
  const Error missing = not_found("Tenant not found: " + id);
  if (!seq) return fail(*call, missing);
  Result<Json> body = parse_json(call->request().body());
  if (!body) return fail(*call, body.error());
  const bool whole = call->request().method() == "PUT";
  if (whole) {
    Result<TenantSpec> spec = read_tenant(*body);
    if (!spec) return fail(*call, spec.error());
  }
  write(
      call,
      [seq, whole, missing, body = *body](Desk& desk) -> Result<TenantRow> {
        const TenantRow* row = desk.tenant(*seq);
        if (row == nullptr) return missing;
        Result<TenantSpec> spec = whole ? read_tenant(body) : gs::update_tenant(row->spec, body);
        if (!spec) return spec.error();
        return desk.update_tenant(*seq, *spec);
      },
      [self = shared_from_this(), call](const TenantRow& row) {
        self->reply(*call, 200, tenant_body(row));
      });
}

void Rest::Impl::delete_tenant(const CallPtr& call) {
  if (Status s = may_change_tenants(call->caller); !s) return fail(*call, s.error());
  const std::string id = call->captured.front();
  const auto seq = tenant_seq(id);
  if (!seq) return fail(*call, not_found("Tenant not found: " + id));
  write(
      call, [seq](Desk& desk) { return desk.remove_tenant(*seq); },
      [self = shared_from_this(), call, id](const Done&) {
        self->reply(*call, 200, Json{{"id", id}, {"message", "Tenant deleted"}});
      });
}

void Rest::Impl::read_usage(const CallPtr& call, UsageQuery query) {
  query.to = parts.clock();
  query.from = query.to - hours(24 * 30);
  for (const auto& [key, value] : call->request().query) {
    const auto time = parse_time(value);
    if (!time) return fail(*call, invalid(key + " must be a time such as 2026-01-31T12:00:00Z"));
    (key == "from" ? query.from : query.to) = *time;
  }
  read(
      call, [query](Reader& reader) { return reader.usage(query); },
      [self = shared_from_this(), call, query](const std::vector<UsageRow>& rows) {
        Json list = Json::array();
        double gpu_hours = 0;
        double cost = 0;
        for (const UsageRow& row : rows) {
          Json one = usage_body(row);
          gpu_hours += one["gpu_hours"].get<double>();
          cost += row.cost;
          list.push_back(std::move(one));
        }
        self->reply(*call, 200,
                    Json{{"from", time_text(query.from)},
                         {"to", time_text(query.to)},
                         {"gpu_hours", gpu_hours},
                         {"cost", cost},
                         {"usage", std::move(list)}});
      });
}

void Rest::Impl::tenant_usage(const CallPtr& call) {
  const std::string id = call->captured.front();
  const auto seq = tenant_seq(id);
  const Error missing = not_found("Tenant not found: " + id);
  if (!seq || !may_see(call->caller, id)) return fail(*call, missing);
  read(
      call, [seq](Reader& reader) { return reader.tenant(*seq); },
      [self = shared_from_this(), call, id, missing](const std::optional<TenantRow>& row) {
        if (!row) return self->fail(*call, missing);  // of one that was deleted the bill stays
        UsageQuery query;
        query.tenant = id;
        self->read_usage(call, query);
      });
}

void Rest::Impl::usage(const CallPtr& call) {
  UsageQuery query;
  if (const auto only = only_tenant(call->caller)) query.tenant = *only;
  read_usage(call, query);
}

}  // namespace gs
