// A folder with a network and gangs to place on it: topo.csv (host, psw, leaf) and one file
// gang_jobs*.csv[.gz] (job_id, arrival_s, hosts, duration_s).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gs::topo {

struct Host {
  std::string name;
  int pod = 0;   // in the order of their first leaf
  int leaf = 0;  // as the file numbers them
};

struct Gang {
  std::string id;
  Instant arrival;
  int hosts = 0;
  Duration duration;
};

struct Trace {
  std::vector<Host> hosts;
  std::vector<Gang> gangs;  // by arrival
};

Result<Trace> read_trace(const std::filesystem::path& folder);

}  // namespace gs::topo
