#include "wire/kube/host_ports.hpp"

#include <map>

#include <gtest/gtest.h>

namespace gs::kube {
namespace {

// Whether both fit on one node, by the amounts alone.
bool fit_together(const std::vector<HostPort>& a, const std::vector<HostPort>& b) {
  std::map<std::string, std::int64_t> used;
  for (const auto& ports : {a, b})
    for (const NamedAmount& amount : host_port_amounts(ports)) used[amount.name] += amount.amount;
  for (const auto& [name, amount] : used)
    if (amount > host_port_capacity(name)) return false;
  return true;
}

TEST(HostPorts, amounts_conflict_exactly_where_ports_do) {
  const std::vector<HostPort> ports = {{"0.0.0.0", 80, "TCP"},   {"10.0.0.1", 80, "TCP"},
                                       {"10.0.0.2", 80, "TCP"},  {"0.0.0.0", 80, "UDP"},
                                       {"0.0.0.0", 8080, "TCP"}, {"10.0.0.1", 80, "UDP"}};
  for (const HostPort& a : ports)
    for (const HostPort& b : ports)
      EXPECT_EQ(fit_together({a}, {b}), !conflict(a, b))
          << a.ip << ":" << a.port << a.protocol << " " << b.ip << ":" << b.port << b.protocol;
}

TEST(HostPorts, a_pod_does_not_conflict_with_itself) {
  EXPECT_TRUE(fit_together({{"0.0.0.0", 80, "TCP"}, {"10.0.0.1", 80, "TCP"}}, {}));
  EXPECT_TRUE(fit_together({{"10.0.0.1", 80, "TCP"}, {"10.0.0.2", 80, "TCP"}}, {}));
}

}  // namespace
}  // namespace gs::kube
