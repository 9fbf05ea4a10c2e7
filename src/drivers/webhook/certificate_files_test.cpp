#include "drivers/webhook/certificate_files.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace gs::webhook {
namespace {

constexpr Instant kNow{1'800'000'000'000};

TEST(CertificateFiles, are_used_when_they_have_changed_and_fit_together) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("certificate-files-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  std::vector<KeyPair> used;
  CertificateFiles files(folder / "tls.crt", folder / "tls.key", [&](const KeyPair& pair) {
    used.push_back(pair);
    return ok_status();
  });
  EXPECT_FALSE(files.look(kNow).ok());
  const KeyPair first = make_authority(kNow, hours(24)).value();
  const KeyPair second = make_authority(kNow, hours(24)).value();
  write("tls.crt", first.certificate);
  write("tls.key", first.key);
  ASSERT_TRUE(files.look(kNow).ok());
  ASSERT_TRUE(files.look(kNow).ok());
  EXPECT_EQ(used, std::vector<KeyPair>{first});

  write("tls.crt", second.certificate);  // the key follows in a moment
  EXPECT_NE(files.look(kNow).error().message.find("does not belong"), std::string::npos);
  EXPECT_EQ(used.size(), 1U);
  write("tls.key", second.key);
  ASSERT_TRUE(files.look(kNow).ok());
  EXPECT_EQ(used.back(), second);

  write("tls.crt", first.certificate);
  write("tls.key", first.key);
  EXPECT_NE(files.look(kNow + hours(24)).error().message.find("has expired"), std::string::npos);
  EXPECT_EQ(used.size(), 2U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gs::webhook
