#include "agent/task_log.hpp"

#include <gtest/gtest.h>

#include "agent/fake_scheduler_test.hpp"
#include "agent/lease.hpp"
#include "agent/outbox.hpp"

namespace gs::agent {
namespace {

std::string whole(const std::string& directory, std::int64_t offset) {
  std::string text;
  while (true) {
    const LogPiece piece = read_task_log(directory, offset, 1000);
    if (piece.data.empty()) return text;
    text += piece.data;
    offset = piece.offset + static_cast<std::int64_t>(piece.data.size());
  }
}

TEST(TaskLog, positions_stay_true_when_old_files_go) {
  const TemporaryDirectory folder;
  TaskLogWriter writer(folder.path(), 4096, 2);
  std::string written;
  for (int i = 0; i < 3000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    writer.append(line);
    written += line;
  }
  const LogPiece first = read_task_log(folder.path(), 0, 100);
  EXPECT_GT(first.offset, 0);  // the beginning is gone, and we are told
  EXPECT_EQ(first.data, written.substr(static_cast<std::size_t>(first.offset), 100));
  EXPECT_EQ(whole(folder.path(), 0), written.substr(static_cast<std::size_t>(first.offset)));
  const auto near_end = static_cast<std::int64_t>(written.size()) - 10;
  EXPECT_EQ(whole(folder.path(), near_end), written.substr(written.size() - 10));
  EXPECT_TRUE(read_task_log(folder.path(), near_end + 10, 100).data.empty());
}

TEST(TaskLog, finds_the_last_lines_across_files) {
  const TemporaryDirectory folder;
  EXPECT_EQ(tail_offset(folder.path(), 5), 0);
  TaskLogWriter writer(folder.path(), 4096, 3);
  for (int i = 0; i < 1000; ++i) writer.append(std::to_string(i) + "\n");
  EXPECT_EQ(whole(folder.path(), tail_offset(folder.path(), 1)), "999\n");
  EXPECT_EQ(whole(folder.path(), tail_offset(folder.path(), 3)), "997\n998\n999\n");
  EXPECT_EQ(whole(folder.path(), tail_offset(folder.path(), 100'000)), whole(folder.path(), 0));
  writer.append("no end");
  EXPECT_EQ(whole(folder.path(), tail_offset(folder.path(), 2)), "999\nno end");
}

TEST(Lease, counts_from_the_last_contact) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/lease";
  EXPECT_FALSE(read_lease(path).has_value());
  ASSERT_TRUE(write_lease(path, {5000, 2000}).ok());
  const Lease lease = read_lease(path).value();
  EXPECT_EQ(lease_left_ms(lease, 5500), 1500);
  EXPECT_EQ(lease_left_ms(lease, 8000), -1000);
  EXPECT_EQ(lease_left_ms({5000, 0}, 99'000), std::nullopt);
}

TEST(Outbox, a_task_that_changes_twice_is_reported_once_and_before_logs) {
  Outbox outbox;
  outbox.report("lost");  // nobody listens yet: the registration will tell
  outbox.open();
  ::agent::LogChunk chunk;
  chunk.set_data("text");
  EXPECT_TRUE(outbox.send_log(chunk));
  outbox.report("a");
  outbox.report("a");
  outbox.report("b");
  EXPECT_EQ(std::get<std::string>(outbox.next().value()), "a");
  EXPECT_EQ(std::get<std::string>(outbox.next().value()), "b");
  EXPECT_EQ(std::get<::agent::LogChunk>(outbox.next().value()).data(), "text");
  outbox.close();
  EXPECT_FALSE(outbox.next().has_value());
  EXPECT_FALSE(outbox.send_log(chunk));
}

TEST(FileNames, no_two_ids_share_one) {
  EXPECT_EQ(file_name_for("job-1.task"), "job-1.task");
  EXPECT_EQ(file_name_for("../x"), "_2e._2fx");
  EXPECT_NE(file_name_for("a/b"), file_name_for("a_b"));
}

}  // namespace
}  // namespace gs::agent
