// Which devices a kubelet has given to which pod, as its pod-resources socket tells it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <podresources.grpc.pb.h>

#include "base/result.hpp"

namespace gs::agent {

struct PodDevices {
  struct Device {
    std::string resource;  // "nvidia.com/gpu"
    std::string id;        // as the device plugin calls it
    bool operator==(const Device&) const = default;
  };
  std::string ns, pod;
  std::vector<Device> devices;  // of all containers
  bool operator==(const PodDevices&) const = default;
};

// Pods without a device are left out.
std::vector<PodDevices> pod_devices(const ::v1::ListPodResourcesResponse& response);

class PodResources {
 public:
  explicit PodResources(std::string socket);

  // NotFound: there is no socket. Unavailable: nobody answers there within a second or two.
  Result<std::vector<PodDevices>> list();

 private:
  std::string socket_;
  std::unique_ptr<::v1::PodResourcesLister::Stub> kubelet_;
};

}  // namespace gs::agent
