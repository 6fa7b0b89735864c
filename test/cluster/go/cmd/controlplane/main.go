// Command controlplane is every server of a Kubernetes control plane in one binary: one link instead of four, and
// one set of pages in memory. The first argument names the server, the others are that server's own flags.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
)

// forceDetachAfter is the one timer of the storage controllers that no flag sets: how long attach/detach waits for
// an unmount before it detaches by force.
const forceDetachAfter = "FORCE_DETACH_AFTER"

const usageExit = 64

func main() {
	if len(os.Args) < 2 {
		refuse("usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
	}

	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)

	switch component {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		shortenForceDetach()
		run(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	default:
		refuse(fmt.Sprintf("controlplane: unknown component %q", component))
	}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func shortenForceDetach() {
	text, set := os.LookupEnv(forceDetachAfter)
	if !set {
		return
	}

	after, err := time.ParseDuration(text)
	if err != nil || after <= 0 {
		refuse(fmt.Sprintf("controlplane: %s must be a positive duration such as 20s, got %q", forceDetachAfter, text))
	}

	attachdetach.DefaultTimerConfig.ReconcilerMaxWaitForUnmountDuration = after
}

func refuse(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(usageExit)
}
