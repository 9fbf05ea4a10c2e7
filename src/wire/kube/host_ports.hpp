// Host ports as amounts of a node, so that the engine counts them like everything else.
//
// A port of one protocol has kAddresses addresses on a node. A pod that listens on all of them
// (0.0.0.0) takes all; one that names an address takes one, and that address, of which there is
// one. So two pods conflict exactly where Kubernetes says that their ports do.
#pragma once

#include <string>
#include <vector>

#include "model/resources.hpp"
#include "wire/kube/pod.hpp"

namespace gs::kube {

// What these ports take of a node; each name once.
std::vector<NamedAmount> host_port_amounts(const std::vector<HostPort>& ports);
// What a node has of an amount that host_port_amounts() names.
std::int64_t host_port_capacity(const std::string& name);

}  // namespace gs::kube
