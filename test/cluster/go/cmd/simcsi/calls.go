package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// quiet are the calls that say nothing about a volume and come all the time.
var quiet = []string{
	"GetPluginInfo",
	"GetPluginCapabilities",
	"Probe",
	"ControllerGetCapabilities",
	"NodeGetCapabilities",
	"NodeGetInfo",
	"GetInfo",
	"NotifyRegistrationStatus",
}

// call is one answered call of CSI: the proof of what happened in which order.
type call struct {
	Seq          int    `json:"seq"`
	At           string `json:"at"`
	Driver       string `json:"driver"`
	RPC          string `json:"rpc"`
	Volume       string `json:"volume"`
	Name         string `json:"name"`
	Node         string `json:"node"`
	Code         string `json:"code"`
	Message      string `json:"message"`
	Milliseconds int64  `json:"milliseconds"`
}

// fault makes calls slow, failing, or both.
type fault struct {
	ID      int    `json:"id"`
	RPC     string `json:"rpc"`
	Driver  string `json:"driver,omitempty"`
	Volume  string `json:"volume,omitempty"`
	Node    string `json:"node,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Times   int    `json:"times,omitempty"`
	DelayMs int64  `json:"delayMs,omitempty"`
	Applied bool   `json:"applied,omitempty"`
	Hits    int    `json:"hits"`

	removed chan struct{}
}

func (f *fault) matches(c call, nodeIDs []string) bool {
	if f.Times > 0 && f.Hits >= f.Times {
		return false
	}

	if f.RPC == "*" && slices.Contains(quiet, c.RPC) {
		return false
	}

	return (f.RPC == "*" || f.RPC == c.RPC) &&
		(f.Driver == "" || f.Driver == c.Driver) &&
		(f.Volume == "" || f.Volume == c.Volume || f.Volume == c.Name) &&
		(f.Node == "" || f.Node == c.Node || slices.Contains(nodeIDs, c.Node))
}

func (f *fault) wait() {
	if f.DelayMs == 0 {
		return
	}

	select {
	case <-time.After(time.Duration(f.DelayMs) * time.Millisecond):
	case <-f.removed:
	}
}

// desk stands before every server: it writes calls down and lets faults happen to them.
type desk struct {
	mu      sync.Mutex
	backend *backend
	calls   []call
	faults  []*fault
	posted  int
}

func newDesk(b *backend) *desk {
	return &desk{backend: b}
}

// intercept is the gate of one server; nodeID is empty for a controller.
func (d *desk) intercept(driver, nodeID string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c := d.describe(driver, nodeID, path.Base(info.FullMethod), request)
		began := d.backend.now()

		response, err := d.answer(ctx, c, request, handler)

		if !slices.Contains(quiet, c.RPC) {
			d.log(c, response, err, began)
		}

		return response, err
	}
}

func (d *desk) answer(ctx context.Context, c call, request any, handler grpc.UnaryHandler) (any, error) {
	f := d.strike(c)
	if f == nil {
		return handler(ctx, request)
	}

	f.wait()

	if f.Code == "" {
		return handler(ctx, request)
	}

	if f.Applied {
		if response, err := handler(ctx, request); err != nil {
			return response, err
		}
	}

	return nil, status.Error(codeOf[f.Code], f.Message)
}

// strike finds the fault that happens to a call, and counts it.
func (d *desk) strike(c call) *fault {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, f := range d.faults {
		if f.matches(c, d.backend.idsOf(f.Node)) {
			f.Hits++

			return f
		}
	}

	return nil
}

func (d *desk) describe(driver, nodeID, rpc string, request any) call {
	c := call{Driver: driver, RPC: rpc, Node: nodeID}

	if r, ok := request.(interface{ GetNodeId() string }); ok {
		c.Node = r.GetNodeId()
	}

	if r, ok := request.(interface{ GetName() string }); ok {
		c.Name = r.GetName()
	}

	if r, ok := request.(interface{ GetSourceVolumeId() string }); ok {
		c.Volume = r.GetSourceVolumeId()
	}

	if r, ok := request.(interface{ GetSnapshotId() string }); ok {
		c.Volume = r.GetSnapshotId()
	}

	if r, ok := request.(interface{ GetVolumeId() string }); ok {
		c.Volume = r.GetVolumeId()
		c.Name = d.backend.nameOf(c.Volume)
	}

	return c
}

func (d *desk) log(c call, response any, err error, began time.Time) {
	if r, ok := response.(created); ok && err == nil {
		c.Volume = r.GetVolume().GetVolumeId()
	}

	c.At = stamp(began)
	c.Code = status.Code(err).String()
	c.Milliseconds = d.backend.now().Sub(began).Milliseconds()

	if err != nil {
		c.Message = status.Convert(err).Message()
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	c.Seq = len(d.calls) + 1
	d.calls = append(d.calls, c)
}

func (d *desk) callsAfter(seq int) []call {
	d.mu.Lock()
	defer d.mu.Unlock()

	return append([]call{}, d.calls[min(max(seq, 0), len(d.calls)):]...)
}

func (d *desk) post(f fault) (int, error) {
	if f.RPC == "" {
		return 0, fmt.Errorf("rpc is missing")
	}

	if _, known := codeOf[f.Code]; f.Code != "" && !known {
		return 0, fmt.Errorf("code %q is not a gRPC code such as Internal", f.Code)
	}

	if f.Code == "" && f.DelayMs == 0 {
		return 0, fmt.Errorf("a fault needs a code, a delayMs, or both")
	}

	if f.Times < 0 || f.DelayMs < 0 {
		return 0, fmt.Errorf("times and delayMs cannot be negative")
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	d.posted++
	f.ID = d.posted
	f.Hits = 0
	f.removed = make(chan struct{})
	d.faults = append(d.faults, &f)

	return f.ID, nil
}

func (d *desk) listFaults() []fault {
	d.mu.Lock()
	defer d.mu.Unlock()

	list := []fault{}
	for _, f := range d.faults {
		list = append(list, *f)
	}

	return list
}

// forget removes one fault, or all of them for id 0, and lets go of the calls they hold.
func (d *desk) forget(id int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	kept := []*fault{}

	for _, f := range d.faults {
		if id != 0 && f.ID != id {
			kept = append(kept, f)

			continue
		}

		close(f.removed)
	}

	removed := len(kept) < len(d.faults)
	d.faults = kept

	return removed
}

// codeOf knows the codes by the names that people write.
var codeOf = func() map[string]codes.Code {
	known := map[string]codes.Code{}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		known[c.String()] = c
	}

	return known
}()

func stamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
