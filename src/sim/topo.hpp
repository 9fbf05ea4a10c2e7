// `gpu-scheduler sim topo DIR`: how near together gangs lie on a network, by policy.
#pragma once

namespace CLI {
class App;
}

namespace gs {

void add_topo(CLI::App& sim, int& exit_code);

}  // namespace gs
