// Command simnode is a machine of the test bed: a real kubelet (volume manager, CSI plugin, plugin registration,
// status, lease, events) over a container runtime that only pretends. One process is one machine, so that a machine
// dies, hangs and returns by a signal to its process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

const usageExit = 64

// longestRoot keeps the sockets that drivers make below the root within the 107 bytes of a unix socket's path.
const longestRoot = 50

type machine struct {
	name          string
	root          string
	kubeconfig    string
	zone          string
	region        string
	labels        map[string]string
	bootID        string
	statusPeriod  time.Duration
	leaseSeconds  int
	syncFrequency time.Duration
	cores         int
	memory        resource.Quantity
	maxPods       int
	verbosity     int
}

func main() {
	m, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "simnode: %v\n", err)
		os.Exit(usageExit)
	}

	if err := run(context.Background(), m); err != nil {
		fmt.Fprintf(os.Stderr, "simnode: %v\n", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (machine, error) {
	m := machine{}
	flags := flag.NewFlagSet("simnode", flag.ContinueOnError)
	flags.StringVar(&m.name, "name", "", "name of the Node")
	flags.StringVar(&m.root, "root", "", "absolute folder for all state of the machine")
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "credentials of system:node:NAME")
	flags.StringVar(&m.zone, "zone", "", "topology.kubernetes.io/zone")
	flags.StringVar(&m.region, "region", "", "topology.kubernetes.io/region")
	labels := flags.String("labels", "", "further labels: a=b,c=d")
	flags.StringVar(&m.bootID, "boot-id", string(uuid.NewUUID()), "nodeInfo.bootID")
	flags.DurationVar(&m.statusPeriod, "status-period", 10*time.Second, "node status period")
	flags.IntVar(&m.leaseSeconds, "lease-seconds", 40, "duration of the node's lease")
	flags.DurationVar(&m.syncFrequency, "sync-frequency", time.Minute, "pod sync period")
	flags.IntVar(&m.cores, "cores", 8, "cores of the machine")
	memory := flags.String("memory", "16Gi", "memory of the machine")
	flags.IntVar(&m.maxPods, "max-pods", 110, "pods that fit the machine")
	flags.IntVar(&m.verbosity, "verbosity", 0, "klog verbosity")

	if err := flags.Parse(arguments); err != nil {
		return m, err
	}

	if m.name == "" || m.root == "" || m.kubeconfig == "" {
		return m, fmt.Errorf("--name, --root and --kubeconfig are needed")
	}

	if !filepath.IsAbs(m.root) || len(m.root) > longestRoot {
		return m, fmt.Errorf("--root must be absolute and at most %d characters, got %q", longestRoot, m.root)
	}

	quantity, err := resource.ParseQuantity(*memory)
	if err != nil {
		return m, fmt.Errorf("--memory %q: %w", *memory, err)
	}

	m.memory = quantity

	m.labels, err = nodeLabels(*labels, m.zone, m.region)

	return m, err
}

func nodeLabels(text, zone, region string) (map[string]string, error) {
	labels := map[string]string{}

	for _, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--labels: %q is not key=value", pair)
		}

		labels[key] = value
	}

	if zone != "" {
		labels["topology.kubernetes.io/zone"] = zone
	}

	if region != "" {
		labels["topology.kubernetes.io/region"] = region
	}

	return labels, nil
}

func run(ctx context.Context, m machine) error {
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)

	if err := logging.Set("v", fmt.Sprint(m.verbosity)); err != nil {
		return err
	}

	if err := allowWithoutKernelLog(); err != nil {
		return err
	}

	client, heartbeat, err := clients(m)
	if err != nil {
		return err
	}

	config, err := configuration(m)
	if err != nil {
		return err
	}

	flags := options.NewKubeletFlags()
	flags.HostnameOverride = m.name
	flags.RootDirectory = m.root
	flags.CertDirectory = filepath.Join(m.root, "pki")
	flags.NodeLabels = m.labels
	flags.MaxPerPodContainerCount = 1

	hollow := kubemark.NewHollowKubelet(
		flags,
		config,
		client,
		heartbeat,
		newHardware(m),
		newImages(),
		newRuntime(),
		cm.NewStubContainerManager(),
	)

	// The fake prober of kubemark calls a container ready before it has started: a rollout would "succeed" while its
	// pod still waits for the volume.
	hollow.KubeletDeps.ProbeManager = nil
	// Events are what a person reads first, so they must be the kubelet's own and reach the API server.
	hollow.KubeletDeps.Recorder = nil
	hollow.KubeletDeps.EventClient = client.CoreV1()

	server := &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}
	if err := kubeletapp.RunKubelet(ctx, server, hollow.KubeletDeps); err != nil {
		return err
	}

	<-ctx.Done()

	return nil
}

// allowWithoutKernelLog lets the kubelet start where the kernel log is closed to it: outside root's own user namespace.
func allowWithoutKernelLog() error {
	log, err := os.Open("/dev/kmsg")
	if err != nil {
		return utilfeature.DefaultMutableFeatureGate.Set("KubeletInUserNamespace=true")
	}

	return log.Close()
}

func clients(m machine) (*clientset.Clientset, *clientset.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		return nil, nil, err
	}

	config.QPS = 100
	config.Burst = 200

	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}

	// As in the kubelet: a heartbeat that hangs longer than it is worth must make room for the next one.
	beat := rest.CopyConfig(config)
	beat.Timeout = min(m.statusPeriod, time.Duration(m.leaseSeconds)*time.Second)
	beat.QPS = -1

	heartbeat, err := clientset.NewForConfig(beat)

	return client, heartbeat, err
}
