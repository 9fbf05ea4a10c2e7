// The bare limits of a control plane: how many Bindings, and how many leases and Bindings, the API
// server takes a second from a client that decides nothing. What a scheduler reaches is judged
// against them, in the same run on the same machine.
//
//	bare-limits --kubeconfig FILE [--pods 5000] [--leases] [--in-flight 64]
//	bare-limits --kubeconfig FILE --for SCHEDULER [--pods 5000] [--gpus 1] [--gang-size 64]
//
// Creates the pods in a namespace of its own, spreads them over the nodes there are, binds them, and
// deletes the namespace. With --for only creates pods, in the namespace default, for a scheduler to
// bind. Prints one JSON object.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const gpusPerNode = 8

type rate struct {
	Count     int     `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	P50Ms     float64 `json:"p50_ms"`
	P99Ms     float64 `json:"p99_ms"`
}

type result struct {
	What     string `json:"what"`
	InFlight int    `json:"in_flight"`
	Nodes    int    `json:"nodes"`
	Created  rate   `json:"pods_created"`
	Bound    rate   `json:"pods_bound"`
}

// inParallel calls do(0) ... do(count-1), `workers` at a time, and stops at the first error.
func inParallel(count, workers int, do func(int) error) (rate, error) {
	latencies := make([]time.Duration, count)
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var all sync.WaitGroup
	begin := time.Now()
	for range workers {
		all.Go(func() {
			for failure.Load() == nil {
				index := int(next.Add(1)) - 1
				if index >= count {
					return
				}
				start := time.Now()
				if err := do(index); err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				latencies[index] = time.Since(start)
			}
		})
	}
	all.Wait()
	if failed := failure.Load(); failed != nil {
		return rate{}, *failed
	}
	seconds := time.Since(begin).Seconds()
	sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
	at := func(part float64) float64 {
		return float64(latencies[int(part*float64(count-1))].Microseconds()) / 1000
	}
	return rate{count, seconds, float64(count) / seconds, at(0.5), at(0.99)}, nil
}

func pod(name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: core.PodSpec{
			SchedulerName: "nobody",
			Containers:    []core.Container{{Name: "c", Image: "none"}},
		},
	}
}

func lease(name, namespace string, holder types.UID) *coordination.Lease {
	identity := string(holder)
	return &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{
			Name: name, Namespace: namespace,
			Labels: map[string]string{"gpu.scheduling/managed": "true"},
		},
		Spec: coordination.LeaseSpec{HolderIdentity: &identity},
	}
}

func binding(one *core.Pod, node string, gpu int) *core.Binding {
	return &core.Binding{
		ObjectMeta: meta.ObjectMeta{
			Name: one.Name, Namespace: one.Namespace, UID: one.UID,
			Annotations: map[string]string{
				"gpu.scheduling/allocated": fmt.Sprintf("%s:%d", node, gpu)},
		},
		Target: core.ObjectReference{Kind: "Node", Name: node},
	}
}

func measure(client kubernetes.Interface, pods, inFlight int, leases bool) (*result, error) {
	ctx := context.Background()
	listed, err := client.CoreV1().Nodes().List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes := listed.Items
	if len(nodes) == 0 {
		return nil, fmt.Errorf("the cluster has no nodes")
	}
	namespace := fmt.Sprintf("bare-limits-%d", time.Now().UnixNano())
	space := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, meta.CreateOptions{}); err != nil {
		return nil, err
	}
	defer client.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{})
	if err := waitForServiceAccount(ctx, client, namespace); err != nil {
		return nil, err
	}

	out := &result{What: "bindings", InFlight: inFlight, Nodes: len(nodes)}
	made := make([]*core.Pod, pods)
	out.Created, err = inParallel(pods, inFlight, func(i int) (err error) {
		made[i], err = client.CoreV1().Pods(namespace).Create(
			ctx, pod(fmt.Sprintf("p-%d", i)), meta.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if leases {
		out.What = "leases and bindings"
	}
	out.Bound, err = inParallel(pods, inFlight, func(i int) error {
		node, gpu := nodes[i%len(nodes)].Name, i/len(nodes)%gpusPerNode
		if leases {
			held := lease(fmt.Sprintf("gpu-%s-%d", node, i/len(nodes)), namespace, made[i].UID)
			_, err := client.CoordinationV1().Leases(namespace).Create(ctx, held, meta.CreateOptions{})
			if err != nil {
				return err
			}
		}
		return client.CoreV1().Pods(namespace).Bind(ctx, binding(made[i], node, gpu),
			meta.CreateOptions{})
	})
	return out, err
}

func waitForServiceAccount(ctx context.Context, client kubernetes.Interface, namespace string) error {
	for attempt := 0; ; attempt++ {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", meta.GetOptions{})
		if err == nil || attempt == 300 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "whom to ask")
	pods := flag.Int("pods", 5000, "how many pods")
	inFlight := flag.Int("in-flight", 64, "requests at a time")
	leases := flag.Bool("leases", false, "create a lease before each Binding")
	flag.StringVar(&forScheduler, "for", "", "only create pods for the scheduler of this name")
	flag.StringVar(&prefix, "prefix", "p", "of the names of these pods")
	flag.IntVar(&gpus, "gpus", 1, "that each of these pods asks for")
	flag.IntVar(&gangSize, "gang-size", 0, "pods of a gang; 0: no gangs")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		config.QPS = -1 // the server's limit is looked for, not the client's
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		var found *result
		var client *kubernetes.Clientset
		if client, err = kubernetes.NewForConfig(config); err == nil {
			if forScheduler != "" {
				found, err = createLoad(client, *pods, *inFlight)
			} else {
				found, err = measure(client, *pods, *inFlight, *leases)
			}
		}
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bare-limits:", err)
		os.Exit(1)
	}
}
