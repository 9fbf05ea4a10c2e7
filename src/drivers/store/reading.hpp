// What is read the same way from every database: the Reader over a pool of sessions, and the parts
// of Store that only look.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "drivers/store/session.hpp"
#include "service/store.hpp"

namespace gs::store {

Result<Loaded> load_all(Session& session);
Result<std::optional<KeyRow>> find_key_in(Session& session, const std::string& tenant,
                                          const std::string& key);
Result<std::optional<JobRow>> find_job_in(Session& session, std::int64_t seq);
// One piece of what Retention lets go, inside the caller's transaction; how many rows went.
Result<std::int64_t> forget_piece(Session& session, const Retention& retention, Instant now);

class PooledReader final : public Reader {
 public:
  explicit PooledReader(std::vector<std::unique_ptr<Session>> sessions);

  Result<std::optional<JobRow>> job(std::int64_t seq) override;
  Result<JobPage> jobs(const JobQuery& query) override;
  Result<std::optional<TenantRow>> tenant(std::int64_t seq) override;
  Result<std::vector<TenantRow>> tenants() override;
  Result<std::vector<NodeRow>> nodes() override;
  Result<std::vector<EventRow>> events(const EventQuery& query) override;
  Result<std::vector<UsageRow>> usage(const UsageQuery& query) override;
  Status ping() override;

 private:
  // A session for one call; waits for a free one.
  class Lent {
   public:
    explicit Lent(PooledReader& pool);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    Session& operator*() { return *session_; }

   private:
    PooledReader& pool_;
    Session* session_ = nullptr;
  };

  std::vector<std::unique_ptr<Session>> sessions_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Session*> free_;
};

}  // namespace gs::store
