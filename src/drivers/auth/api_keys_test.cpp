#include "drivers/auth/api_keys.hpp"

#include <gtest/gtest.h>

#include "drivers/auth/crypto.hpp"

namespace gs {
namespace {

std::string error_of(const std::string& text) {
  const auto keys = ApiKeys::parse(text);
  return keys.ok() ? "" : keys.error().message;
}

std::string digest(const std::string& key) { return hex(sha256(key)); }

TEST(ApiKeys, are_found_by_their_key) {
  const auto keys =
      ApiKeys::parse("# people\n\nroot admin " + digest("k1") + "\n  ann\ttenant:tenant-7 " +
                     digest("k2") + "\r\nwall viewer " + digest("k3") + "\nbob viewer:tenant-7 " +
                     digest("k4") + "\nn1 agent " + digest("k5"));
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->size(), 5U);
  EXPECT_EQ(keys->find("k1"), (Caller{Role::Admin, "", "root"}));
  EXPECT_EQ(keys->find("k2"), (Caller{Role::Tenant, "tenant-7", "ann"}));
  EXPECT_EQ(keys->find("k3"), (Caller{Role::Viewer, "", "wall"}));
  EXPECT_EQ(keys->find("k4"), (Caller{Role::Viewer, "tenant-7", "bob"}));
  EXPECT_EQ(keys->find("k5"), (Caller{Role::Agent, "", "n1"}));
  EXPECT_EQ(keys->find("k6"), std::nullopt);
  EXPECT_EQ(keys->find(""), std::nullopt);
  EXPECT_EQ(keys->find(digest("k1")), std::nullopt);  // the file is of no use to who reads it
}

TEST(ApiKeys, errors_name_the_line) {
  const std::string d = digest("x");
  EXPECT_EQ(error_of("# x\na admin\n"), "line 2: must be `name role[:tenant] sha256`");
  EXPECT_EQ(error_of("a root " + d),
            "line 1: a role is admin, tenant:TENANT, viewer, viewer:TENANT or agent");
  EXPECT_EQ(error_of("a tenant " + d), "line 1: the role tenant needs a tenant");
  EXPECT_EQ(error_of("a tenant: " + d), "line 1: no tenant after the colon");
  EXPECT_EQ(error_of("a admin:t " + d), "line 1: the role admin has no tenant");
  EXPECT_EQ(error_of("a admin 12ab"), "line 1: a SHA-256 has 64 hexadecimal digits");
  EXPECT_EQ(error_of("a admin " + d + "\na viewer " + digest("y")),
            "line 2: the name was used above");
  EXPECT_EQ(error_of("a admin " + d + "\nb viewer " + d), "line 2: the same key was used above");
  EXPECT_NE(error_of("a\x01 admin " + d), "");
}

TEST(ApiKeys, a_new_key_is_found_by_its_line) {
  const auto made = make_api_key({Role::Tenant, "tenant-7", "ann"});
  ASSERT_TRUE(made.ok());
  const auto keys = ApiKeys::parse(made->line);
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->find(made->key), (Caller{Role::Tenant, "tenant-7", "ann"}));
  EXPECT_EQ(made->line.find(made->key), std::string::npos);
  EXPECT_NE(make_api_key({Role::Admin, "", "a"})->key, make_api_key({Role::Admin, "", "a"})->key);
  EXPECT_FALSE(make_api_key({Role::Tenant, "", "ann"}).ok());
  EXPECT_FALSE(make_api_key({Role::Admin, "", "two words"}).ok());
}

}  // namespace
}  // namespace gs
