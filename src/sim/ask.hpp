// Questions to a cluster that a scenario describes: why does this job wait, would that one start?
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gs {

// Explains a job at the end of each case in which it occurs. 0: answered, 2: bad input.
int explain_in_scenario(const std::string& file, const std::string& job, bool json);
// Asks for the job given by keys of a submit line, or, without any, answers the file's own dry
// runs.
int dry_run_in_scenario(const std::string& file, const std::vector<std::string>& keys, bool json);

void add_why(CLI::App& app, int& exit_code);
void add_dry_run(CLI::App& app, int& exit_code);

}  // namespace gs
