#include "drivers/auth/authenticator.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "drivers/auth/api_keys.hpp"
#include "drivers/auth/signer_test.hpp"

namespace gs {
namespace {

constexpr Instant kNow{1'800'000'000'000};
const std::string kSecret(40, 's');

class AuthenticatorTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.auth.api_keys_file = file("keys", root_.line + "\n");
    settings_.auth.jwt_hs256_secret_file = file("secret", kSecret + "\n");
    settings_.auth.agent_token_file = file("agent", "token.of.the-agents\n");
  }
  void TearDown() override {
    for (const std::string& path : written_) std::remove(path.c_str());
  }

  std::string file(const std::string& name, const std::string& text) {
    written_.push_back(testing::TempDir() + "authenticator-" + name);
    std::ofstream(written_.back()) << text;
    return written_.back();
  }
  std::unique_ptr<Authenticator> opened() {
    auto made = Authenticator::open(settings_);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }

  NewApiKey root_ = *make_api_key({Role::Admin, "", "root"});
  Settings settings_;
  std::vector<std::string> written_;
};

TEST_F(AuthenticatorTest, knows_keys_tokens_and_agents) {
  const auto auth = opened();
  const Caller root{Role::Admin, "", "root"};
  EXPECT_EQ(auth->identify("", root_.key, kNow).value(), root);
  EXPECT_EQ(auth->identify("Bearer " + root_.key, "", kNow).value(), root);
  EXPECT_EQ(auth->identify("bearer   " + root_.key + " ", "", kNow).value(), root);
  const std::string token =
      testing_keys::hs256_token(kSecret, R"({"tenant_id":"t","sub":"ann","exp":1800000100})");
  EXPECT_EQ(auth->identify("Bearer " + token, "", kNow).value(),
            (Caller{Role::Tenant, "t", "ann"}));
  EXPECT_EQ(auth->identify("Bearer token.of.the-agents", "", kNow).value(),
            (Caller{Role::Agent, "", "agent"}));
}

TEST_F(AuthenticatorTest, refuses_everybody_else) {
  const auto auth = opened();
  const auto refused = [&](const std::string& authorization, const std::string& key) {
    const auto caller = auth->identify(authorization, key, kNow);
    return !caller.ok() && caller.error().code == ErrorCode::Unauthenticated;
  };
  EXPECT_TRUE(refused("", ""));
  EXPECT_TRUE(refused("", "wrong"));
  EXPECT_TRUE(refused("", root_.key + "x"));
  EXPECT_TRUE(refused("Bearer", ""));
  EXPECT_TRUE(refused("Bearer ", ""));
  EXPECT_TRUE(refused("Basic cm9vdDpyb290", ""));
  EXPECT_TRUE(refused(root_.key, ""));
  EXPECT_TRUE(refused("Bearer a.b.c", ""));
  EXPECT_TRUE(refused("Bearer " + root_.key, root_.key));  // which of them?
  EXPECT_TRUE(refused("", std::string(100'000, 'x')));
}

TEST_F(AuthenticatorTest, where_nobody_logs_in_everybody_is_the_local_admin) {
  settings_ = {};
  const auto auth = opened();
  EXPECT_EQ(auth->identify("", "", kNow).value(), local_admin());
  EXPECT_EQ(auth->identify("", "anything", kNow).value(), local_admin());
}

TEST_F(AuthenticatorTest, a_reload_takes_new_keys_and_keeps_the_old_ones_on_errors) {
  const auto auth = opened();
  const NewApiKey ann = *make_api_key({Role::Viewer, "", "ann"});
  file("keys", "nonsense\n");
  const Status bad = auth->reload(settings_);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("line 1"), std::string::npos);
  EXPECT_TRUE(auth->identify("", root_.key, kNow).ok());
  file("keys", ann.line);
  ASSERT_TRUE(auth->reload(settings_).ok());
  EXPECT_FALSE(auth->identify("", root_.key, kNow).ok());
  EXPECT_TRUE(auth->identify("", ann.key, kNow).ok());
}

TEST_F(AuthenticatorTest, weak_or_missing_secrets_end_the_start) {
  settings_.auth.jwt_hs256_secret_file = file("short", "short\n");
  EXPECT_FALSE(Authenticator::open(settings_).ok());
  settings_.auth.jwt_hs256_secret_file = testing::TempDir() + "authenticator-not-there";
  EXPECT_FALSE(Authenticator::open(settings_).ok());
  settings_.auth.jwt_hs256_secret_file.clear();
  settings_.auth.agent_token_file = file("weak", "agent\n");
  EXPECT_FALSE(Authenticator::open(settings_).ok());
}

TEST_F(AuthenticatorTest, can_be_reloaded_while_it_is_used) {
  const auto auth = opened();
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::thread user([&] {
    while (!stop) failed += auth->identify("", root_.key, kNow).ok() ? 0 : 1;
  });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(auth->reload(settings_).ok());
  stop = true;
  user.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace gs
