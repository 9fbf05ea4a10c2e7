// One empty database of either kind for a test, and records to put into it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "drivers/store/open.hpp"
#include "drivers/store/server_test.hpp"
#include "drivers/store/session.hpp"
#include "service/store.hpp"

namespace gs::store {

enum class Backend { Sqlite, Postgres };

// One server for all tests; nullptr where PostgreSQL is not installed.
PostgresServer* shared_server();

class StoreTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override;

  std::unique_ptr<Store> open();
  std::unique_ptr<Store> lead();  // opened, and leads
  std::unique_ptr<Reader> reader(int connections = 2);
  std::unique_ptr<Session> session();
  Result<std::unique_ptr<Store>> try_open();
  SqliteSettings sqlite() const;
  PostgresSettings postgres() const { return shared_server()->settings(database_); }

  TemporaryFolder folder_;
  std::string database_;
};

inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::Sqlite ? "sqlite" : "postgres";
}

JobRow sample_job(std::int64_t seq);
// Every field has a value of its own.
JobRow full_job(std::int64_t seq);
TenantRow full_tenant(std::int64_t seq);
NodeRow full_node(const std::string& name);
EventRow sample_event(std::uint64_t id, const std::string& type, std::int64_t job,
                      const std::string& tenant);
std::string text_of(const JobRow& job);  // all of it, to compare
std::string text_of(const TenantRow& tenant);
std::string text_of(const NodeRow& node);
std::string text_of(const EventRow& event);

}  // namespace gs::store
