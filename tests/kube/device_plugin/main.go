// A device plugin without devices: it offers the ids that it is told, so that a real kubelet hands
// them out, and tells the container which ones it got, as NVIDIA's does.
//
//	device-plugin FOLDER RESOURCE ID...
//
// FOLDER is the kubelet's device-plugins folder, as seen from here.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const socket = "tests.sock"

type plugin struct {
	api.UnimplementedDevicePluginServer
	ids []string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	list := &api.ListAndWatchResponse{}
	for _, id := range p.ids {
		list.Devices = append(list.Devices, &api.Device{ID: id, Health: api.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return answer, nil
}

func register(folder, resource string) error {
	link, err := grpc.NewClient("unix:"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer link.Close()
	_, err = api.NewRegistrationClient(link).Register(context.Background(), &api.RegisterRequest{
		Version: api.Version, Endpoint: socket, ResourceName: resource})
	return err
}

func run(folder, resource string, ids []string) error {
	listener, err := net.Listen("unix", filepath.Join(folder, socket))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{ids: ids})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := register(folder, resource); err != nil {
		return err
	}
	return <-ended
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "device-plugin FOLDER RESOURCE ID...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "device-plugin:", err)
		os.Exit(1)
	}
}
