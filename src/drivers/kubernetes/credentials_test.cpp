#include "drivers/kubernetes/credentials.hpp"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "drivers/kubernetes/exec_plugin.hpp"
#include "net/base64.hpp"
#include "wire/clock_json.hpp"
#include "wire/json_reader.hpp"

namespace gs::kube {
namespace {

constexpr const char* kConfig = R"(
apiVersion: v1
kind: Config
preferences: {}
current-context: dev
clusters:
- name: dev
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: Q0E=
    tls-server-name: kubernetes
- name: open
  cluster: {server: "https://open.example/base", insecure-skip-tls-verify: true}
users:
- name: ann
  user:
    client-certificate-data: Q0VSVA==
    client-key: keys/ann.key
- name: bot
  user: {token: abc}
contexts:
- name: dev
  context: {cluster: dev, user: ann, namespace: team-a}
- name: bot
  context: {cluster: open, user: bot}
)";

Result<ClusterAccess> read(const std::string& text, const std::string& context = "") {
  return read_kubeconfig({{"/etc/kube/config", text}}, context);
}

std::string error_of(const std::string& text, const std::string& context = "") {
  const auto access = read(text, context);
  return access.ok() ? "" : access.error().message;
}

// A kubeconfig with one cluster, user and context, all called x.
std::string config_of(const std::string& cluster, const std::string& user) {
  return "current-context: x\nclusters: [{name: x, cluster: {" + cluster +
         "}}]\nusers: [{name: x, user: {" + user +
         "}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n";
}

constexpr const char* kServer = "server: 'https://h:6443'";

TEST(Base64, reads_what_it_writes_and_nothing_else) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\x01\x02"})
    EXPECT_EQ(base64_decode(base64_encode(text)), text);
  EXPECT_EQ(base64_decode("YW\nJj\n"), "abc");
  for (const char* text : {"a", "a===", "====", "YW=j", "YWJj-", "YW*j", "YWJ"})
    EXPECT_FALSE(base64_decode(text)) << text;
}

TEST(Kubeconfig, the_current_context_says_cluster_user_and_namespace) {
  const auto access = read(kConfig);
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->server.text(), "https://10.0.0.1:6443");
  EXPECT_EQ(access->tls.ca, "CA");
  EXPECT_EQ(access->tls.server_name, "kubernetes");
  EXPECT_EQ(access->tls.certificate, "CERT");
  EXPECT_EQ(access->tls.key_file, "/etc/kube/keys/ann.key");
  EXPECT_EQ(access->name_space, "team-a");
  EXPECT_EQ(access->source, "context 'dev' of /etc/kube/config");
}

TEST(Kubeconfig, another_context_can_be_named) {
  const auto access = read(kConfig, "bot");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->token, "abc");
  EXPECT_TRUE(access->tls.trust_anybody);
  EXPECT_EQ(access->server.path, "/base");
  EXPECT_EQ(access->name_space, "default");
  EXPECT_EQ(error_of(kConfig, "prod"),
            "/etc/kube/config: there is no context 'prod' (there are: bot, dev)");
}

TEST(Kubeconfig, the_first_file_that_has_a_name_counts) {
  const std::string first = "users: [{name: bot, user: {token: first}}]\ncurrent-context: bot\n";
  const auto access = read_kubeconfig({{"a/one", first}, {"b/two", kConfig}}, "");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->token, "first");
  EXPECT_TRUE(access->source.find("b/two") != std::string::npos);
}

TEST(Kubeconfig, errors_name_the_file_and_the_field) {
  EXPECT_EQ(error_of("clusters: 3"), "/etc/kube/config: clusters must be a list");
  EXPECT_EQ(error_of("clusters: [{cluster: {}}]"),
            "/etc/kube/config: clusters[0].name is required");
  EXPECT_EQ(error_of("{}"), "/etc/kube/config: current-context is not set; name one of: none");
  EXPECT_EQ(error_of(config_of("", "")),
            "/etc/kube/config: clusters[x].cluster.server is required");
  EXPECT_EQ(error_of(config_of(kServer, "token: 12")),
            "/etc/kube/config: users[x].user.token must be a text: put it in quotes");
  EXPECT_EQ(error_of(config_of(kServer, "client-certificate-data: '*'")),
            "/etc/kube/config: users[x].user.client-certificate-data is not base64");
  EXPECT_EQ(error_of(config_of(kServer, "client-certificate: a.crt")),
            "/etc/kube/config: users[x].user.client-key is required with client-certificate");
  EXPECT_NE(error_of("a: [").find("/etc/kube/config: "), std::string::npos);
  EXPECT_NE(error_of("current-context: x\ncontexts: [{name: x, context: {cluster: y}}]")
                .find("contexts[x].context: there is no cluster 'y'"),
            std::string::npos);
}

TEST(Kubeconfig, what_is_not_supported_is_refused_with_the_reason) {
  EXPECT_NE(error_of(config_of(kServer, "username: a, password: b")).find("basic authentication"),
            std::string::npos);
  EXPECT_NE(error_of(config_of(kServer, "auth-provider: {name: gcp}")).find("use an exec plugin"),
            std::string::npos);
  EXPECT_NE(error_of(config_of(kServer, "token: a, as: root")).find("user.as is not supported"),
            std::string::npos);
  const std::string proxied = std::string(kServer) + ", proxy-url: 'http://p'";
  EXPECT_NE(error_of(config_of(proxied, "token: a")).find("cluster.proxy-url is not supported"),
            std::string::npos);
  EXPECT_NE(error_of(config_of(kServer, "exec: {command: a, apiVersion: v1}")).find("apiVersion"),
            std::string::npos);
  EXPECT_NE(error_of(config_of(kServer,
                               "exec: {command: a, interactiveMode: Always, apiVersion: "
                               "client.authentication.k8s.io/v1}"))
                .find("interactiveMode"),
            std::string::npos);
}

class Files : public ::testing::Test {
 protected:
  Files()
      : folder_(std::filesystem::temp_directory_path() /
                ("credentials-" + std::to_string(::getpid()) + "-" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
    search_.variable = [this](const char* name) { return variables_[name]; };
    search_.service_account = folder_;
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text, bool may_run = false) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    if (may_run) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // Access by a plugin with this shell script.
  ClusterAccess by_plugin(const std::string& script, const std::string& more = "") {
    write("plugin", "#!/bin/sh\n" + script + "\n", true);
    const std::string path =
        write("config", config_of(kServer,
                                  "exec: {apiVersion: client.authentication.k8s.io/v1, "
                                  "interactiveMode: Never, command: ./plugin, installHint: "
                                  "get it there" +
                                      more + "}"));
    search_.kubeconfig = path;
    auto access = find_cluster(search_);
    EXPECT_TRUE(access.ok()) << access.error().message;
    return *access;
  }

  std::filesystem::path folder_;
  ClusterSearch search_;
  std::map<std::string, std::string> variables_;
};

TEST_F(Files, kubeconfig_is_looked_for_where_kubectl_does) {
  EXPECT_NE(find_cluster(search_).error().message.find("no cluster is configured"),
            std::string::npos);
  variables_ = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  EXPECT_EQ(find_cluster(search_)->server.text(), "https://[fd00::1]");
  variables_["HOME"] = folder_ / "home";
  EXPECT_EQ(find_cluster(search_)->server.text(), "https://[fd00::1]");
  write("home/.kube/config", kConfig);
  EXPECT_EQ(find_cluster(search_)->name_space, "team-a");
  const std::string other = write("other", config_of("server: 'https://other'", "token: a"));
  variables_["KUBECONFIG"] = (folder_ / "missing").string() + ":" + other + ":";
  EXPECT_EQ(find_cluster(search_)->server.host, "other");
  search_.kubeconfig = folder_ / "missing";
  EXPECT_EQ(find_cluster(search_).error().message,
            "kubeconfig " + search_.kubeconfig + ": there is no such file");
}

TEST_F(Files, a_pod_has_its_service_account_and_its_token_rotates) {
  variables_ = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}};
  write("ca.crt", "CA");
  write("token", "first\n");
  write("namespace", "gpu-scheduler");
  const auto access = find_cluster(search_);
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->name_space, "gpu-scheduler");
  auto identity = identify(*access);
  ASSERT_TRUE(identity.ok()) << identity.error().message;
  EXPECT_EQ(identity->token, "first");
  EXPECT_EQ(identity->tls.ca, "CA");
  EXPECT_EQ(identity->tls.ca_file, "");
  write("token", "second\n");
  EXPECT_EQ(identify(*access)->token, "second");
  write("token", "");
  EXPECT_NE(identify(*access).error().message.find("token: is empty"), std::string::npos);
}

TEST_F(Files, a_file_that_is_not_there_is_named) {
  search_.kubeconfig =
      write("config", config_of(kServer, "client-certificate: a.crt, client-key: a.key"));
  const auto identity = identify(*find_cluster(search_));
  ASSERT_FALSE(identity.ok());
  EXPECT_NE(identity.error().message.find("client-certificate " + (folder_ / "a.crt").string()),
            std::string::npos);
}

constexpr const char* kPluginHead =
    R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";

TEST_F(Files, an_exec_plugin_is_asked_and_told_about_the_cluster) {
  const ClusterAccess access =
      by_plugin("printf '%s' \"$KUBERNETES_EXEC_INFO\" > \"$(dirname \"$0\")/info\"\n" +
                    std::string(kPluginHead) +
                    "{\"token\":\"'\"$1-$WHO\"'\",\"expirationTimestamp\":"
                    "\"2030-01-02T03:04:05Z\"}}'",
                ", args: [hello], env: [{name: WHO, value: me}], provideClusterInfo: true");
  const auto identity = identify(access, seconds(30));
  ASSERT_TRUE(identity.ok()) << identity.error().message;
  EXPECT_EQ(identity->token, "hello-me");
  EXPECT_EQ(identity->expires, parse_time("2030-01-02T03:04:05Z"));
  std::ifstream file(folder_ / "info");
  const std::string info{std::istreambuf_iterator<char>(file), {}};
  const auto json = parse_json(info);
  ASSERT_TRUE(json.ok()) << info;
  EXPECT_EQ((*json)["spec"]["cluster"]["server"], "https://h:6443");
  EXPECT_EQ((*json)["spec"]["interactive"], false);
}

TEST_F(Files, a_plugin_that_fails_hangs_or_lies_is_an_error_with_its_own_words) {
  auto failed = identify(by_plugin("echo 'log in first' >&2; exit 3"), seconds(30));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("ended with code 3: log in first"), std::string::npos);
  EXPECT_NE(failed.error().message.find("get it there"), std::string::npos);
  auto hung = identify(by_plugin("sleep 600 & wait"), milliseconds(300));
  ASSERT_FALSE(hung.ok());
  EXPECT_NE(hung.error().message.find("did not end within 300 ms"), std::string::npos);
  auto lied = identify(by_plugin("echo '{}'"), seconds(30));
  ASSERT_FALSE(lied.ok());
  EXPECT_NE(lied.error().message.find("kind must be ExecCredential"), std::string::npos);
  auto empty = identify(by_plugin(std::string(kPluginHead) + "{}}'"), seconds(30));
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().message.find("status.token or clientCertificateData is required"),
            std::string::npos);
  const ClusterAccess access = by_plugin("");
  std::filesystem::remove(folder_ / "plugin");
  EXPECT_NE(identify(access).error().message.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace gs::kube
