// `gpu-scheduler serve`: the standalone service, put together.
#pragma once

namespace CLI {
class App;
}

namespace gs {

void add_serve(CLI::App& app, int& exit_code);
void add_config(CLI::App& app, int& exit_code);
void add_key(CLI::App& app, int& exit_code);

}  // namespace gs
