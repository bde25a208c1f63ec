package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// A DRA driver of devices that are not there: a ResourceSlice of its Node names them, and the kubelet asks for those of
// a claim before the pod starts. Containers see the names of their pod's devices in a file, <folder>/pods/<uid>/names,
// by a volume of the host: the containerd of Debian knows no CDI.
type devices struct {
	driver, folder string

	mutex sync.Mutex
	// Which claim has a device. None is given twice, whatever the claims say.
	held map[string]types.UID
	// Which pods have a file because of a claim.
	pods map[types.UID][]types.UID
}

func runDevices() error {
	kubeconfig := flag.String("kubeconfig", "", "credentials of the Node")
	node := flag.String("node", "", "name of the Node")
	driver := flag.String("driver", "", "name of the driver, and of its folder below that of the kubelet")
	count := flag.Int("count", 0, "how many devices there are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	plugin := &devices{
		driver: *driver,
		folder: filepath.Join(kubeletplugin.KubeletPluginsDir, *driver),
		held:   map[string]types.UID{},
		pods:   map[types.UID][]types.UID{},
	}
	if err := os.MkdirAll(filepath.Join(plugin.folder, "pods"), 0o755); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.DriverName(*driver), kubeletplugin.NodeName(*node), kubeletplugin.KubeClient(client))
	if err != nil {
		return err
	}
	defer helper.Stop()
	all := make([]resource.Device, *count)
	for number := range all {
		all[number].Name = fmt.Sprintf("device-%d", number)
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: all}}}
	pools := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{*node: pool}}
	if err := helper.PublishResources(ctx, pools); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (d *devices) PrepareResourceClaims(
	_ context.Context, claims []*resource.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		prepared, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Err: err, Devices: prepared}
	}
	return results, nil
}

func (d *devices) prepare(claim *resource.ResourceClaim) ([]kubeletplugin.Device, error) {
	var prepared []kubeletplugin.Device
	var names []string
	for _, given := range claim.Status.Allocation.Devices.Results {
		if given.Driver != d.driver {
			continue
		}
		if holder, taken := d.held[given.Device]; taken && holder != claim.UID {
			return nil, fmt.Errorf("device %s of claim %s is that of claim %s", given.Device, claim.UID, holder)
		}
		names = append(names, given.Device)
		prepared = append(prepared, kubeletplugin.Device{
			Requests: []string{given.Request}, PoolName: given.Pool, DeviceName: given.Device,
		})
	}
	for _, name := range names {
		d.held[name] = claim.UID
	}
	d.pods[claim.UID] = nil
	for _, user := range claim.Status.ReservedFor {
		folder := d.ofPod(user.UID)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		text := strings.Join(names, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(folder, "names"), []byte(text), 0o644); err != nil {
			return nil, err
		}
		d.pods[claim.UID] = append(d.pods[claim.UID], user.UID)
	}
	return prepared, nil
}

func (d *devices) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
		for name, holder := range d.held {
			if holder == claim.UID {
				delete(d.held, name)
			}
		}
		for _, pod := range d.pods[claim.UID] {
			if err := os.RemoveAll(d.ofPod(pod)); err != nil {
				results[claim.UID] = err
			}
		}
		delete(d.pods, claim.UID)
	}
	return results, nil
}

func (d *devices) ofPod(uid types.UID) string {
	return filepath.Join(d.folder, "pods", string(uid))
}

func (d *devices) HandleError(_ context.Context, err error, msg string) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", msg, err)
}
