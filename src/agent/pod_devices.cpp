#include "agent/pod_devices.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "agent/files.hpp"

namespace gs::agent {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr int kMostBytes = 16 * 1024 * 1024;

}  // namespace

std::vector<PodDevices> pod_devices(const ::v1::ListPodResourcesResponse& response) {
  std::vector<PodDevices> pods;
  for (const ::v1::PodResources& pod : response.pod_resources()) {
    PodDevices one{pod.namespace_(), pod.name(), {}};
    for (const ::v1::ContainerResources& container : pod.containers())
      for (const ::v1::ContainerDevices& devices : container.devices())
        for (const std::string& id : devices.device_ids())
          one.devices.push_back({devices.resource_name(), id});
    if (!one.devices.empty()) pods.push_back(std::move(one));
  }
  return pods;
}

PodResources::PodResources(std::string socket) : socket_(std::move(socket)) {}

Result<std::vector<PodDevices>> PodResources::list() {
  if (!file_exists(socket_)) {
    kubelet_.reset();
    return not_found(socket_ + " is not there");
  }
  if (!kubelet_) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(kMostBytes);
    // Some servers refuse the authority that gRPC makes of a socket's path.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    kubelet_ = ::v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
        "unix:" + socket_, grpc::InsecureChannelCredentials(), arguments));
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  ::v1::ListPodResourcesResponse response;
  const grpc::Status status = kubelet_->List(&context, {}, &response);
  if (status.ok()) return pod_devices(response);
  kubelet_.reset();  // the next one connects anew
  return Error{ErrorCode::Unavailable, fmt::format("{}: {}", socket_, status.error_message())};
}

}  // namespace gs::agent
