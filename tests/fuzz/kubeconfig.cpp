// Any text is a kubeconfig or an error that names the file; any output of an exec plugin is a
// credential that proves something, or an error.
#include "drivers/kubernetes/kubeconfig.hpp"

#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "drivers/kubernetes/exec_plugin.hpp"
#include "net/base64.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto access = gs::kube::read_kubeconfig({{"folder/config", text}}, "");
  if (access.ok()) {
    CHECK(!access->server.host.empty());
    if (access->exec) (void)gs::kube::exec_info(*access);
  } else {
    CHECK(access.error().message.starts_with("folder/config: "));
  }
  const auto credential = gs::kube::parse_exec_credential(text, "v1");
  if (credential.ok()) CHECK(!credential->token.empty() || !credential->certificate.empty());
  if (const auto bytes = gs::base64_decode(text))
    CHECK(gs::base64_decode(gs::base64_encode(*bytes)) == bytes);
  return 0;
}
