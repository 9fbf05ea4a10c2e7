// `gpu-scheduler kube`: the Kubernetes scheduler, put together.
#pragma once

namespace CLI {
class App;
}

namespace gs {

void add_kube(CLI::App& app, int& exit_code);

}  // namespace gs
