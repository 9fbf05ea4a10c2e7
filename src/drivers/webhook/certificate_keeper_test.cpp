#include "drivers/webhook/certificate_keeper.hpp"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "drivers/webhook/own_secret.hpp"
#include "net/base64.hpp"

namespace gs::webhook {
namespace {

constexpr Instant kStart{1'800'000'000'000};
constexpr const char* kSecrets = "/api/v1/namespaces/ns/secrets";
constexpr const char* kSecret = "/api/v1/namespaces/ns/secrets/tls";
constexpr const char* kMutating =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook";

// An API server in memory: objects by path, with versions that writes must know.
class FakeCluster {
 public:
  ClusterReply ask(const ClusterRequest& request) {
    asked.push_back(request.method + " " + request.path);
    if (before) std::exchange(before, nullptr)(request);
    if (down || (request.method == forbidden)) return {down ? 0 : 403, "", "told so"};
    if (request.method == "POST") return create(request.path + "/tls", request.body);
    const auto at = objects.find(request.path);
    if (at == objects.end()) return {404, "", "not found"};
    if (request.method == "PUT") {
      Json body = parse_json(request.body).value();
      if (version(body) != version(at->second)) return {409, "", "it changed"};
      at->second = stamped(std::move(body));
    }
    if (request.method == "PATCH") patch(at->second, parse_json(request.body).value());
    return {200, at->second.dump(), ""};
  }
  ClusterReply create(const std::string& path, const std::string& body) {
    if (objects.contains(path)) return {409, "", "it exists"};
    objects[path] = stamped(parse_json(body).value());
    return {201, objects[path].dump(), ""};
  }
  void add_configuration() {
    objects[kMutating] = parse_json(R"({"webhooks":[{"name":"a","clientConfig":{"url":"u"}},
      {"name":"b","clientConfig":{"caBundle":"b2xk"},"rules":[]}]})")
                             .value();
  }
  std::vector<std::string> bundles() {
    std::vector<std::string> found;
    for (const Json& one : objects[kMutating]["webhooks"])
      found.push_back(*base64_decode(one["clientConfig"]["caBundle"].get<std::string>()));
    return found;
  }
  CertificateSet stored() { return read_own_secret(objects.at(kSecret)).value(); }

  std::map<std::string, Json> objects;
  std::vector<std::string> asked;
  std::function<void(const ClusterRequest&)> before;  // the next one, once
  bool down = false;
  std::string forbidden;  // a method

 private:
  static std::string version(const Json& object) {
    return object["metadata"].value("resourceVersion", "");
  }
  Json stamped(Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    return object;
  }
  static void patch(Json& object, const Json& with) {
    for (const Json& change : with["webhooks"])
      for (Json& entry : object["webhooks"])
        if (entry["name"] == change["name"]) entry.merge_patch(change);
  }
  int version_ = 0;
};

// A replica, and what it serves.
class Replica {
 public:
  explicit Replica(FakeCluster& cluster)
      : keeper_(
            options(), [&](const ClusterRequest& request) { return cluster.ask(request); },
            [this](const KeyPair& pair) {
              served = pair;
              return ok_status();
            },
            counts_) {}

  static KeeperOptions options() {
    KeeperOptions out;
    out.name_space = "ns";
    out.secret = "tls";
    out.configuration = "hook";
    out.rotation.names = {"hook.ns.svc"};
    out.rotation.authority_life = hours(90);
    out.rotation.serving_life = hours(30);
    return out;
  }
  Status look(Instant now = kStart) { return keeper_.look(now); }

  KeyPair served;

 private:
  Metrics metrics_;
  WebhookMetrics counts_{metrics_};
  CertificateKeeper keeper_;
};

TEST(CertificateKeeper, makes_shares_and_publishes) {
  FakeCluster cluster;
  cluster.add_configuration();
  Replica one(cluster), other(cluster);
  ASSERT_TRUE(one.look().ok());
  ASSERT_TRUE(other.look().ok());
  EXPECT_TRUE(check_pair(one.served).ok());
  EXPECT_EQ(one.served, other.served);
  EXPECT_EQ(one.served, cluster.stored().serving);
  EXPECT_EQ(cluster.bundles(), std::vector<std::string>(2, cluster.stored().bundle));
  EXPECT_EQ(cluster.objects[kMutating]["webhooks"][0]["clientConfig"]["url"], "u");
  EXPECT_EQ(cluster.objects[kSecret]["type"], "kubernetes.io/tls");

  cluster.asked.clear();
  ASSERT_TRUE(one.look(kStart + hours(1)).ok());
  for (const std::string& asked : cluster.asked) EXPECT_TRUE(asked.starts_with("GET ")) << asked;
}

TEST(CertificateKeeper, the_first_creator_wins) {
  FakeCluster cluster;
  Replica one(cluster), other(cluster);
  cluster.before = [&](const ClusterRequest& first) {
    EXPECT_EQ(first.method, "GET");
    cluster.before = [&](const ClusterRequest& second) {  // between its look and its write
      EXPECT_EQ(second.method + second.path, "POST" + std::string(kSecrets));
      EXPECT_TRUE(other.look().ok());
    };
  };
  // The read above has seen nothing; so this one tries to create, and finds the other's.
  ASSERT_TRUE(one.look().ok());
  EXPECT_EQ(one.served, other.served);
  EXPECT_EQ(one.served, cluster.stored().serving);
}

TEST(CertificateKeeper, a_write_that_comes_late_is_lost) {
  FakeCluster cluster;
  Replica one(cluster), other(cluster);
  ASSERT_TRUE(one.look().ok() && other.look().ok());
  const Instant late = kStart + hours(20);
  cluster.before = [&](const ClusterRequest&) {
    cluster.before = [&](const ClusterRequest& second) {
      EXPECT_EQ(second.method, "PUT");
      EXPECT_TRUE(other.look(late).ok());
    };
  };
  ASSERT_TRUE(one.look(late).ok());
  EXPECT_EQ(one.served, other.served);
  EXPECT_EQ(one.served, cluster.stored().serving);
}

TEST(CertificateKeeper, a_new_authority_reaches_the_configuration_before_it_is_served) {
  FakeCluster cluster;
  cluster.add_configuration();
  Replica one(cluster);
  ASSERT_TRUE(one.look().ok());
  ASSERT_TRUE(one.look(kStart + hours(59)).ok());
  const std::string old = cluster.stored().bundle;
  const KeyPair served = one.served;
  const Instant late = kStart + hours(60);
  cluster.forbidden = "PATCH";
  EXPECT_FALSE(one.look(late).ok());
  EXPECT_EQ(certificates_of(cluster.stored().bundle)->size(), 2U);
  EXPECT_FALSE(one.look(late + hours(2)).ok());
  EXPECT_EQ(one.served, served);  // the API server does not know the new one
  cluster.forbidden.clear();
  ASSERT_TRUE(one.look(late + hours(2)).ok());
  EXPECT_EQ(one.served, served);
  EXPECT_EQ(cluster.bundles()[0], cluster.stored().bundle);
  ASSERT_TRUE(one.look(late + hours(3)).ok());
  EXPECT_NE(one.served, served);
  EXPECT_FALSE(is_signed_by(one.served.certificate, old));
}

TEST(CertificateKeeper, puts_back_what_somebody_removed_or_changed) {
  FakeCluster cluster;
  Replica one(cluster);
  ASSERT_TRUE(one.look().ok());
  const KeyPair served = one.served;
  cluster.objects.erase(kSecret);
  cluster.add_configuration();
  ASSERT_TRUE(one.look().ok());
  EXPECT_EQ(one.served, served);
  EXPECT_EQ(cluster.stored().serving, served);
  EXPECT_EQ(cluster.bundles()[1], cluster.stored().bundle);

  cluster.objects[kSecret]["data"] = Json::object();  // as a chart makes it
  cluster.objects[kSecret]["metadata"]["labels"]["chart"] = "mine";
  ASSERT_TRUE(one.look().ok());
  EXPECT_EQ(cluster.stored().serving, served);
  EXPECT_EQ(cluster.objects[kSecret]["metadata"]["labels"]["chart"], "mine");
}

TEST(CertificateKeeper, serves_on_while_the_api_server_is_away) {
  FakeCluster cluster;
  Replica one(cluster);
  cluster.down = true;
  EXPECT_EQ(one.look().error().message, "Secret ns/tls: told so");
  cluster.down = false;
  ASSERT_TRUE(one.look().ok());
  const KeyPair served = one.served;
  cluster.down = true;
  EXPECT_FALSE(one.look(kStart + hours(25)).ok());
  EXPECT_EQ(one.served, served);
}

TEST(CertificateKeeper, leaves_a_certificate_of_others_alone) {
  FakeCluster cluster;
  Json secret = new_secret("ns", "tls");
  secret["data"] = {{"tls.crt", base64_encode("x")}, {"tls.key", base64_encode("y")}};
  cluster.create(kSecret, secret.dump());
  Replica one(cluster);
  EXPECT_NE(one.look().error().message.find("was not made here"), std::string::npos);
  EXPECT_EQ(cluster.objects[kSecret]["data"]["tls.crt"], base64_encode("x"));
  cluster.objects[kSecret]["data"]["tls.crt"] = "?";
  EXPECT_EQ(one.look().error().message, "Secret ns/tls: its entry tls.crt is not base64");
}

}  // namespace
}  // namespace gs::webhook
