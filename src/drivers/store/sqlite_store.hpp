// Store on SQLite. Who leads holds a lock on `<path>.lock`, which the kernel gives back when the
// process ends, however it ends; the term in the database fences what should not be there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drivers/store/checkpoint.hpp"
#include "drivers/store/open.hpp"
#include "drivers/store/sqlite.hpp"

namespace gs::store {

class SqliteStore final : public Store {
 public:
  SqliteStore(SqliteSettings settings, std::unique_ptr<SqliteSession> session);
  ~SqliteStore() override;
  Status prepare_statements();

  Result<bool> try_lead() override;
  Status renew() override;
  Result<Loaded> load() override;
  Status commit(const Batch& batch) override;
  Result<std::optional<KeyRow>> find_key(const std::string& tenant,
                                         const std::string& key) override;
  Result<std::optional<JobRow>> find_job(std::int64_t seq) override;
  Result<std::int64_t> forget(const Retention& retention, Instant now) override;

 private:
  Status begin();  // and is the leader
  Status end(Status status);
  Status write(const Batch& batch);
  template <typename Record, typename Write>
  Status write_all(SqliteStatement& statement, const std::vector<Record>& records, Write&& write);

  SqliteSettings settings_;
  std::unique_ptr<SqliteSession> session_;
  std::unique_ptr<Checkpointer> checkpointer_;
  int lock_file_ = -1;
  std::int64_t term_ = 0;   // 0: does not lead
  std::int64_t turn_ = -1;  // as begin() found it
  SqliteStatement begin_, commit_, meta_, advance_, add_job_, change_job_, add_label_, put_tenant_,
      put_node_, drop_node_, add_event_, add_usage_, put_key_;
};

}  // namespace gs::store
