// The databases behind service/store.hpp: SQLite, one file on this machine, and PostgreSQL.
// Opening creates the schema, or brings it up to date; a database that a newer version has written
// is refused. A Store must be told to lead (try_lead) before it writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "service/store.hpp"

namespace gs {

struct SqliteSettings {
  std::string path;             // created with mode 0600; `<path>.lock` beside it says who leads
  std::int64_t max_pages = 0;   // of 4 KiB; 0: as many as the disk holds
  int busy_timeout_ms = 5'000;  // that another process may hold the file
};

Result<std::unique_ptr<Store>> open_sqlite(const SqliteSettings& settings);
// The database must exist: open_sqlite() first.
Result<std::unique_ptr<Reader>> read_sqlite(const SqliteSettings& settings, int connections);

// What libpq takes; what is empty comes from its own defaults (PGHOST, ~/.pgpass and so on).
struct PostgresSettings {
  std::string host;  // a name, an address, or the folder of a socket
  int port = 5432;
  std::string user, password, database;
  std::string sslmode = "prefer";
  int connect_timeout_s = 5;
  int answer_timeout_ms = 15'000;  // a database that is silent for so long is out of reach
};

Result<std::unique_ptr<Store>> open_postgres(const PostgresSettings& settings);
Result<std::unique_ptr<Reader>> read_postgres(const PostgresSettings& settings, int connections);

}  // namespace gs
