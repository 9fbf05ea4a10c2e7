// Store on PostgreSQL. Who leads holds an advisory lock with its connection, and a term in the
// database: every write asks for the term, so that whoever was overtaken while it slept can't
// write. A leader that has not been heard of for kSilence is overtaken: its backend is ended, which
// frees the lock.
#pragma once

#include <string>
#include <vector>

#include "drivers/store/open.hpp"
#include "drivers/store/postgres.hpp"

namespace gs::store {

class PostgresStore final : public Store {
 public:
  explicit PostgresStore(const PostgresSettings& settings);
  Status open();

  Result<bool> try_lead() override;
  Status renew() override;
  Result<Loaded> load() override;
  Status commit(const Batch& batch) override;
  Result<std::optional<KeyRow>> find_key(const std::string& tenant,
                                         const std::string& key) override;
  Result<std::optional<JobRow>> find_job(std::int64_t seq) override;
  Result<std::int64_t> forget(const Retention& retention, Instant now) override;

 private:
  Status on_connect();
  Status prepare_statements();
  Status lead_again();  // on a new connection, in the same term
  Result<bool> try_lock();
  Status end_holder(int only_pid);  // of the lock; 0: whoever it is
  Result<bool> is_leader_silent();
  Status raise_term();
  Status check_leading() const;
  Status overtaken();
  Status look_at_turn(std::int64_t turn);

  PostgresSession session_;
  std::int64_t term_ = 0;  // 0: does not lead
  int pid_ = 0;            // of the backend that holds the lock for us
  bool overtaken_ = false;
};

// The statements that write a batch. Rows that are named twice count as they are named last.
std::vector<Prepared> statements_for(const Batch& batch, std::int64_t term);
Status prepare_batch_statements(PostgresSession& session);

}  // namespace gs::store
