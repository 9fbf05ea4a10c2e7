// `gpu-scheduler webhook`: the admission webhook, put together.
#pragma once

namespace CLI {
class App;
}

namespace gs {

void add_webhook(CLI::App& app, int& exit_code);

}  // namespace gs
