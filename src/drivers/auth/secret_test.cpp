#include "drivers/auth/secret.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/secret_file.hpp"

namespace gs {
namespace {

TEST(Secret, is_made_once_and_only_for_its_owner) {
  char name[] = "/tmp/gpu-secret-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/token";
  const Result<std::string> made = secret_in(path);
  ASSERT_TRUE(made.ok());
  const std::string first = *read_secret(path);
  EXPECT_GE(first.size(), 32U);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_TRUE(secret_in(path).ok());
  EXPECT_EQ(*read_secret(path), first);
  EXPECT_FALSE(secret_in(std::string(name) + "/no/such/folder").ok());
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace gs
