#include "agent/pod_devices.hpp"

#include <memory>

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include "agent/fake_scheduler_test.hpp"

namespace gs::agent {
namespace {

void give(::v1::ListPodResourcesResponse& response, const std::string& pod,
          const std::string& resource, const std::string& id) {
  ::v1::PodResources& one = *response.add_pod_resources();
  one.set_name(pod);
  one.set_namespace_("ml");
  ::v1::ContainerDevices& devices = *one.add_containers()->add_devices();
  devices.set_resource_name(resource);
  devices.add_device_ids(id);
}

// A kubelet, as far as it is asked.
class Kubelet final : public ::v1::PodResourcesLister::Service {
 public:
  explicit Kubelet(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Kubelet() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status List(grpc::ServerContext*, const ::v1::ListPodResourcesRequest*,
                    ::v1::ListPodResourcesResponse* response) override {
    *response = answer;
    return status;
  }

  ::v1::ListPodResourcesResponse answer;
  grpc::Status status;

 private:
  std::unique_ptr<grpc::Server> server_;
};

TEST(PodDevices, are_told_by_the_kubelet) {
  const TemporaryDirectory folder;
  const std::string socket = folder.path() + "/kubelet.sock";
  PodResources pods(socket);
  EXPECT_EQ(pods.list().error().code, ErrorCode::NotFound);
  {
    Kubelet kubelet(socket);
    give(kubelet.answer, "a", "nvidia.com/gpu", "GPU-1");
    kubelet.answer.mutable_pod_resources(0)->add_containers()->add_devices()->add_device_ids("x");
    kubelet.answer.add_pod_resources()->set_name("without");
    EXPECT_EQ(pods.list().value(),
              (std::vector<PodDevices>{{"ml", "a", {{"nvidia.com/gpu", "GPU-1"}, {"", "x"}}}}));
    kubelet.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls");
    EXPECT_EQ(pods.list().error().code, ErrorCode::Unavailable);
    EXPECT_NE(pods.list().error().message.find("too many calls"), std::string::npos);
  }
  EXPECT_FALSE(pods.list().ok()) << "it is gone";
  Kubelet again(socket);
  give(again.answer, "b", "nvidia.com/gpu", "GPU-0");
  EXPECT_EQ(pods.list().value().at(0).pod, "b");
}

}  // namespace
}  // namespace gs::agent
