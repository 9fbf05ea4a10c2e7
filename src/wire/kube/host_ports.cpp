#include "wire/kube/host_ports.hpp"

#include <algorithm>

namespace gs::kube {
namespace {

constexpr std::int64_t kAddresses = 64;
constexpr const char* kAnyAddress = "0.0.0.0";
// As people read it: "node-1 has 0 of 64 addresses of host port 80/TCP free".
constexpr const char* kAll = "addresses of host port ";
constexpr const char* kOne = "address ";

void raise(std::vector<NamedAmount>& amounts, std::string name, std::int64_t amount) {
  const auto same = std::find_if(amounts.begin(), amounts.end(),
                                 [&](const NamedAmount& known) { return known.name == name; });
  if (same == amounts.end())
    amounts.push_back({std::move(name), amount});
  else
    same->amount = std::max(same->amount, amount);
}

}  // namespace

std::vector<NamedAmount> host_port_amounts(const std::vector<HostPort>& ports) {
  std::vector<NamedAmount> amounts;
  for (const HostPort& port : ports) {
    const std::string text = std::to_string(port.port) + "/" + port.protocol;
    if (port.ip == kAnyAddress) {
      raise(amounts, kAll + text, kAddresses);
      continue;
    }
    raise(amounts, kAll + text, 1);
    raise(amounts, kOne + port.ip + " of host port " + text, 1);
  }
  return amounts;
}

std::int64_t host_port_capacity(const std::string& name) {
  return name.starts_with(kAll) ? kAddresses : 1;
}

}  // namespace gs::kube
