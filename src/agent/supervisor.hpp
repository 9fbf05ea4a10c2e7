// The supervisor: one process per task that starts it, keeps its output, waits for its end and
// writes it down. It needs nobody: the agent and the scheduler may come and go.
//
// Promises: no process of the task is left when its end is written; the task does not outlive the
// supervisor; out of touch for longer than the lease, it stops its task by itself.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace gs {

namespace agent {
// Runs the task whose directory this is; returns when it has ended. 0: its end is written down.
int run_task(const std::string& directory);
}  // namespace agent

// `gpu-scheduler run-task DIR`, which only the agent calls.
void add_run_task(CLI::App& app, int& exit_code);

}  // namespace gs
