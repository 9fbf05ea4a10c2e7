#include "service/access.hpp"

#include <gtest/gtest.h>

namespace gs {
namespace {

const Caller kAdmin{Role::Admin, "", "root"};
const Caller kTenant{Role::Tenant, "tenant-1", "ann"};
const Caller kViewer{Role::Viewer, "", "wall"};
const Caller kNarrowViewer{Role::Viewer, "tenant-1", "bob"};
const Caller kAgent{Role::Agent, "", "n1"};

// One letter per question: see own, see other, submit own, submit other, change own, change other,
// see cluster, change cluster, change tenants, agent.
std::string rights(const Caller& c) {
  std::string out;
  const auto add = [&](const Status& status) { out += status.ok() ? '+' : '-'; };
  add(may_see(c, "tenant-1"));
  add(may_see(c, "tenant-2"));
  add(may_submit_for(c, "tenant-1"));
  add(may_submit_for(c, "tenant-2"));
  add(may_change_jobs_of(c, "tenant-1"));
  add(may_change_jobs_of(c, "tenant-2"));
  add(may_see_cluster(c));
  add(may_change_cluster(c));
  add(may_change_tenants(c));
  add(may_serve_as_agent(c));
  return out;
}

TEST(Access, every_role_has_its_rights_and_no_others) {
  EXPECT_EQ(rights(kAdmin), "++++++++++");
  EXPECT_EQ(rights(kTenant), "+-+-+-+---");
  EXPECT_EQ(rights(kViewer), "++----+---");
  EXPECT_EQ(rights(kNarrowViewer), "+-----+---");
  EXPECT_EQ(rights(kAgent), "---------+");
}

TEST(Access, what_belongs_to_nobody_is_not_a_tenant_s) {
  EXPECT_FALSE(may_see(Caller{Role::Tenant, "", "x"}, "").ok());
  EXPECT_FALSE(may_see(kTenant, "").ok());
}

TEST(Access, lists_are_narrowed) {
  EXPECT_EQ(only_tenant(kAdmin), std::nullopt);
  EXPECT_EQ(only_tenant(kViewer), std::nullopt);
  EXPECT_EQ(only_tenant(kTenant), "tenant-1");
  EXPECT_EQ(only_tenant(kNarrowViewer), "tenant-1");
  EXPECT_EQ(only_tenant(kAgent), "");  // nothing belongs to it
}

TEST(Access, a_refusal_says_who_and_what) {
  const Status status = may_submit_for(kViewer, "tenant-2");
  EXPECT_EQ(status.error().code, ErrorCode::PermissionDenied);
  EXPECT_EQ(status.error().message, "wall (viewer) may not submit jobs for tenant `tenant-2`");
}

TEST(Access, roles_that_need_a_tenant_have_one) {
  EXPECT_TRUE(validate(kTenant).ok());
  EXPECT_TRUE(validate(kNarrowViewer).ok());
  EXPECT_TRUE(validate(local_admin()).ok());
  EXPECT_FALSE(validate(Caller{Role::Tenant, "", "x"}).ok());
  EXPECT_FALSE(validate(Caller{Role::Admin, "t", "x"}).ok());
  EXPECT_FALSE(validate(Caller{Role::Agent, "t", "x"}).ok());
  EXPECT_EQ(role_of("root"), std::nullopt);
  EXPECT_EQ(role_of("viewer"), Role::Viewer);
}

}  // namespace
}  // namespace gs
