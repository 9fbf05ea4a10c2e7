// Pods for a scheduler to bind: created as fast as the API server takes them.
package main

import (
	"context"
	"fmt"
	"strconv"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

var (
	forScheduler, prefix string
	gpus, gangSize       int
)

func loadPod(index int) *core.Pod {
	one := pod(fmt.Sprintf("%s-%d", prefix, index))
	one.Spec.SchedulerName = forScheduler
	one.Spec.Containers[0].Resources.Limits = core.ResourceList{
		"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	if gangSize > 0 {
		one.Annotations = map[string]string{
			"gpu.scheduling/gang":      fmt.Sprintf("%s-gang-%d", prefix, index/gangSize),
			"gpu.scheduling/gang-size": strconv.Itoa(gangSize),
		}
	}
	return one
}

func createLoad(client kubernetes.Interface, pods, inFlight int) (*result, error) {
	ctx := context.Background()
	if err := waitForServiceAccount(ctx, client, "default"); err != nil {
		return nil, err
	}
	out := &result{What: "pods for " + forScheduler, InFlight: inFlight}
	var err error
	out.Created, err = inParallel(pods, inFlight, func(i int) error {
		_, err := client.CoreV1().Pods("default").Create(ctx, loadPod(i), meta.CreateOptions{})
		return err
	})
	return out, err
}
