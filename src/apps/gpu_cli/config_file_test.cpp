#include "apps/gpu_cli/config_file.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "apps/gpu_cli/session.hpp"

namespace gs::cli {
namespace {

struct Folder {
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "gpu-cli-test-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST(ConfigFile, is_read_as_it_was_written_and_by_its_owner_only) {
  const Folder folder;
  const std::string path = folder.path + "/a/cli.yaml";
  const ConfigFile config{"https://gpu.example:8443", "key: \"odd\"", "/etc/ca.pem", "tenant-1"};
  ASSERT_TRUE(save_config(path, config).ok());
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
  EXPECT_EQ(*load_config(path), config);
  ASSERT_TRUE(save_config(path, {}).ok());
  EXPECT_EQ(*load_config(path), ConfigFile{});
}

TEST(ConfigFile, that_is_not_there_is_empty_and_a_broken_one_an_error) {
  EXPECT_EQ(*load_config("/nowhere/cli.yaml"), ConfigFile{});
  EXPECT_NE(read_config("sever: http://x").error().message.find("server"), std::string::npos);
  EXPECT_FALSE(read_config("a: [").ok());
}

class AccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"GPU_SCHEDULER_URL", "GPU_SCHEDULER_API_URL", "GPU_SCHEDULER_API_KEY",
                             "GPU_SCHEDULER_TENANT_ID", "GPU_SCHEDULER_CA_FILE"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(AccessTest, flags_go_before_the_environment_and_that_before_the_file) {
  const ConfigFile config{"http://file:1", "file-key", "", "tenant-1"};
  EXPECT_EQ(find_access({}, {})->server.text(), "http://localhost:8080");
  EXPECT_EQ(find_access({}, config)->server.text(), "http://file:1");
  EXPECT_EQ(find_access({}, config)->api_key, "file-key");
  setenv("GPU_SCHEDULER_URL", "http://environment:2", 1);
  EXPECT_EQ(find_access({}, config)->server.text(), "http://environment:2");
  ServerFlags flags;
  flags.server = "http://flag:3";
  EXPECT_EQ(find_access(flags, config)->server.text(), "http://flag:3");
}

TEST_F(AccessTest, a_stored_key_goes_only_to_its_own_server) {
  const ConfigFile config{"http://file:1", "file-key", "", ""};
  ServerFlags flags;
  flags.server = "http://elsewhere:1";
  EXPECT_EQ(find_access(flags, config)->api_key, "");
  flags.server = "http://file:1/";  // the same, written differently
  EXPECT_EQ(find_access(flags, config)->api_key, "file-key");
}

TEST_F(AccessTest, time_outs_are_seconds_unless_they_say_otherwise) {
  ServerFlags flags;
  flags.timeout = "5";
  EXPECT_EQ(find_access(flags, {})->timeout.ms, 5000);
  flags.timeout = "2m";
  EXPECT_EQ(find_access(flags, {})->timeout.ms, 120'000);
  flags.timeout = "soon";
  EXPECT_FALSE(find_access(flags, {}).ok());
}

TEST_F(AccessTest, a_key_of_several_lines_is_refused) {
  ServerFlags flags;
  flags.api_key = "key\r\nX-Other: 1";
  EXPECT_FALSE(find_access(flags, {}).ok());
}

}  // namespace
}  // namespace gs::cli
