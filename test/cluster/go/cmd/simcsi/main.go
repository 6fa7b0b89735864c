// Command simcsi is the storage of the test bed: CSI drivers (controller, nodes, registrars) over one backend in memory
// that enforces what a real one does, with faults to order and a referee who knows what is mounted where.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

const usageExit = 64

// drivers are the --driver flags.
type drivers map[string]options

func (d drivers) String() string {
	return fmt.Sprint(map[string]options(d))
}

func (d drivers) Set(text string) error {
	parts := strings.Split(text, ",")
	o := defaultOptions()

	if parts[0] == "" {
		return fmt.Errorf("a driver needs a name")
	}

	for _, part := range parts[1:] {
		if err := o.set(part); err != nil {
			return err
		}
	}

	d[parts[0]] = o

	return nil
}

func (o *options) set(text string) error {
	key, value, _ := strings.Cut(text, "=")

	flags := map[string]*bool{"attach": &o.Attach, "exclusive": &o.Exclusive, "topology": &o.Topology, "expand": &o.Expand}
	if flag, known := flags[key]; known {
		parsed, err := strconv.ParseBool(value)
		*flag = parsed

		return err
	}

	numbers := map[string]*int64{"capacity": &o.Capacity, "snapshotReady": &o.SnapshotReady}
	if number, known := numbers[key]; known {
		parsed, err := strconv.ParseInt(value, 10, 64)
		*number = parsed

		return err
	}

	return fmt.Errorf("no driver option is named %q", key)
}

func main() {
	served := drivers{}
	flags := flag.NewFlagSet("simcsi", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address of the control API, on loopback")
	sockets := flags.String("sockets", "", "folder for the controller sockets")
	cluster := flags.String("cluster", "testbed", "name of the cluster, for the tags of volumes")
	flags.Var(served, "driver", "NAME[,option=value…]; may be given several times")

	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usageExit)
	}

	if len(served) == 0 || *sockets == "" {
		fmt.Fprintln(os.Stderr, "simcsi: --sockets and at least one --driver are needed")
		os.Exit(usageExit)
	}

	if err := run(served, *listen, *sockets, *cluster); err != nil {
		log.Fatalf("simcsi: %v", err)
	}
}

func run(served drivers, listen, sockets, cluster string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}

	if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("--listen %s is not on loopback, and everything is allowed there", listen)
	}

	b := newBackend(time.Now, cluster)
	d := newDesk(b)

	for driver, o := range served {
		b.setOptions(driver, o)

		server := grpc.NewServer(grpc.UnaryInterceptor(d.intercept(driver, "")))
		csi.RegisterIdentityServer(server, &identity{driver: driver, backend: b})
		csi.RegisterControllerServer(server, &controller{driver: driver, backend: b})

		if err := serve(server, filepath.Join(sockets, driver+".sock")); err != nil {
			return err
		}
	}

	log.Printf("control API on http://%s", listener.Addr())

	control := &api{backend: b, desk: d, machines: newMachines(b, d)}

	return (&http.Server{Handler: control.routes(), ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}
