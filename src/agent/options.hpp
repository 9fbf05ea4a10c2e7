// What the agent is told on its command line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/node.hpp"

namespace gs::agent {

// Of the agent of a Kubernetes node, which writes its GpuNodeStatus and runs no tasks.
struct KubeOptions {
  bool on = false;
  bool dry_run = false, json = false;  // print what would be written, and no more
  std::string node_name;               // empty: the host's name
  std::string kubeconfig, context;
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8082;
};

struct Options {
  std::string server = "localhost:9090";
  std::string node_id;  // empty: the host's name
  std::string state_dir;
  std::string instance_id;  // of the state directory: made once, kept there
  std::string address;  // told to other members of a gang; empty: that by which we reach the server
  std::map<std::string, std::string> labels;
  std::vector<std::string> domain;  // network path, outermost first
  std::vector<Taint> taints;
  std::string token, tls_ca;      // tls_ca: a file in PEM; empty: without TLS
  std::int64_t heartbeat_ms = 0;  // 0: as the scheduler says
  std::int64_t metrics_ms = 15'000;
  std::string simulate, simulate_file;
  std::string sysfs_root = "/";
  std::string default_user = "nobody";
  bool allow_root = false;
  bool stop_tasks_on_exit = false;
  std::string cgroup_root;
  std::string container_runtime;
  std::vector<std::string> container_args;
  std::int64_t log_bytes = 16LL * 1024 * 1024;
  int log_files = 2;
  int parent = 0;                         // end with this process; 0: with nobody
  std::int64_t grace_ms = 30'000;         // where an order names none
  std::string binary = "/proc/self/exe";  // whose `run-task` supervises
  KubeOptions kube;
};

}  // namespace gs::agent
