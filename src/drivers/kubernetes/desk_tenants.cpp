// Tenants: GpuTenants become tenants of the engine, parents before children, and hear what came of
// it.
//
// The engine moves no tenant, and forgets none that has jobs or tenants below it. A GpuTenant that
// goes below another one, or is deleted, while its pods are there keeps its place until they have
// gone; its limits change at once. One that the engine can't have (its parent is missing) lets no
// pod in that waits: without its limits the pod would get more than somebody meant it to have.
#include "drivers/kubernetes/desk.hpp"

namespace gs::kube {
namespace {

// Figures change with every pod: they are told so often.
constexpr Duration kBetweenFigures = seconds(1);

// What becomes of a tenant concerns those below it.
template <typename Records>
std::set<std::string> below(const std::string& name, const Records& records) {
  std::set<std::string> names;
  for (const auto& [other, record] : records)
    if (record.wanted && record.wanted->parent == name) names.insert(other);
  return names;
}

}  // namespace

bool Desk::put(const GpuTenant& tenant) {
  GpuTenantRecord& record = tenants_[tenant.meta.name];
  tenant_seen(record, tenant.meta.uid, tenant.status);
  if (record.wanted && record.spec_text == tenant.spec_text && record.unreadable.empty())
    return false;
  record.wanted = tenant.tenant;
  record.spec_text = tenant.spec_text;
  record.unreadable.clear();
  dirty_tenants_ = below(tenant.meta.name, tenants_);
  dirty_tenants_.insert(tenant.meta.name);
  apply_tenants();
  settle();
  return true;
}

// The one before it stays in force.
void Desk::put_broken_tenant(const std::string& name, const std::string& uid, std::string error) {
  GpuTenantRecord& record = tenants_[name];
  tenant_seen(record, uid, {});
  record.unreadable = std::move(error);
}

void Desk::tenant_seen(GpuTenantRecord& record, const std::string& uid, TenantStatus shown) {
  record.status.seen(uid, std::move(shown));
  tenants_changed_ = true;
  if (const std::optional<Instant> again = record.status.look_again()) tenants_again_ = again;
}

void Desk::remove_tenant(const std::string& name) {
  const auto it = tenants_.find(name);
  if (it == tenants_.end()) return;
  it->second.status.forget();
  it->second.wanted.reset();
  dirty_tenants_ = below(name, tenants_);
  dirty_tenants_.insert(name);
  apply_tenants();
  settle();
}

void Desk::apply_tenants() {
  while (!dirty_tenants_.empty()) {
    const std::string name = std::move(dirty_tenants_.extract(dirty_tenants_.begin()).value());
    GpuTenantRecord& record = tenants_.at(name);
    const bool was_in_force = record.in_force;
    apply(name, record);
    if (record.in_force != was_in_force) dirty_tenants_.merge(below(name, tenants_));
    if (!record.wanted && !record.status.is_known() && !unsettled_tenants_.contains(name))
      tenants_.erase(name);
  }
  tenants_changed_ = true;
}

void Desk::apply(const std::string& name, GpuTenantRecord& record) {
  unsettled_tenants_.erase(name);
  record.problem.clear();
  const std::string above = record.wanted ? record.wanted->parent : std::string{};
  const auto parent = tenants_.find(above);
  const bool has_parent = parent != tenants_.end() && parent->second.in_force;
  record.in_force = record.wanted && (above.empty() || has_parent);
  if (record.wanted && !record.in_force) {
    record.problem = parent != tenants_.end() && parent->second.wanted
                         ? "its parent " + above + " is not accepted"
                         : "there is no GpuTenant " + above + ", its parent";
    return;
  }
  Tenant tenant;
  tenant.id = tenant.name = name;
  if (record.wanted) tenant = *record.wanted;
  const TenantRecord* now = engine_tenant(name);
  if (now == nullptr && !record.wanted) return;
  if (now != nullptr && (!record.wanted || now->spec.parent != above)) {
    if (is_idle(*now)) {
      (void)tell(RemoveTenant{name});
      if (!record.wanted) return;
    } else {
      unsettled_tenants_.insert(name);
      tenant.parent = now->spec.parent;
      if (record.wanted)
        record.problem = "its own limits are in force; it goes " +
                         (above.empty() ? "to the top" : "below " + above) +
                         " when no pod is left of it, or when the scheduler starts anew";
    }
  }
  if (const Status put = tell(PutTenant{std::move(tenant)}); !put) {
    record.in_force = false;
    record.problem = put.error().message;
  }
}

const TenantRecord* Desk::engine_tenant(const std::string& name) const {
  const TenantId id = engine_->cluster().find_tenant(name);
  if (!id.valid() || engine_->cluster().tenant(id).gone) return nullptr;
  return &engine_->cluster().tenant(id);
}

bool Desk::is_idle(const TenantRecord& tenant) {
  return tenant.jobs == 0 && tenant.children.empty();
}

// Those that wait for their last pod.
void Desk::settle_tenants() {
  for (const std::string& name : unsettled_tenants_)
    if (const TenantRecord* now = engine_tenant(name); now == nullptr || is_idle(*now))
      dirty_tenants_.insert(name);
  if (!dirty_tenants_.empty()) apply_tenants();
}

// Who has no GpuTenant has no limits. A pod that runs has its place already: it counts, whatever
// has become of its tenant.
Status Desk::admit_to(const std::string& tenant, bool runs) {
  if (const auto it = tenants_.find(tenant);
      it != tenants_.end() && !runs && it->second.status.is_known() && !it->second.in_force)
    return invalid("tenant " + tenant + " is not accepted: " + words_about(it->second));
  if (engine_tenant(tenant) != nullptr) return ok_status();
  Tenant made;
  made.id = tenant;
  return tell(PutTenant{std::move(made)});
}

// ---------------------------------------------------------------- words

std::string Desk::words_about(const GpuTenantRecord& record) {
  if (!record.unreadable.empty()) return record.unreadable;
  return record.problem.empty() ? "in force" : record.problem;
}

TenantStatus Desk::status_of(const std::string& name, const GpuTenantRecord& record) const {
  TenantStatus status;
  status.accepted = record.problem.empty() && record.unreadable.empty();
  status.message = words_about(record);
  if (const TenantRecord* now = engine_tenant(name)) {
    status.used_gpu_milli = now->used.gpu_milli;
    status.waiting_jobs = now->waiting_jobs;
  }
  return status;
}

std::optional<Instant> Desk::tenants_due() const {
  if (!synced_) return std::nullopt;
  if (tenants_changed_ && !tenants_.empty()) return tenants_told_ + kBetweenFigures;
  return tenants_again_;
}

void Desk::tell_tenants() {
  if (tenants_again_ && *tenants_again_ <= now_) {
    tenants_again_.reset();
    tenants_changed_ = true;
  }
  if (!tenants_changed_ || now_ < tenants_told_ + kBetweenFigures) return;
  tenants_changed_ = false;
  tenants_told_ = now_;
  for (auto& [name, record] : tenants_) {
    if (!record.status.is_known()) continue;
    TenantStatus status = status_of(name, record);
    const TenantStatus& expected = record.status.expected(now_);
    if (expected == status) continue;
    const bool is_news = expected.accepted != status.accepted || expected.message != status.message;
    record.status.tell(status, now_);
    orders_.emplace_back(TellTenant{name, record.status.uid(), std::move(status), is_news});
  }
}

}  // namespace gs::kube
