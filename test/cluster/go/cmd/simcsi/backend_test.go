package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const disk = "disk.sim"

// stand is a backend with two machines in z1 and one in z2, under a driver with these options.
func stand(o options) *backend {
	b := newBackend(func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }, "test")
	b.setOptions(disk, o)
	b.addNode(node{driver: disk, name: "n1", id: "i-1", zone: "z1", limit: 2})
	b.addNode(node{driver: disk, name: "n2", id: "i-2", zone: "z1"})
	b.addNode(node{driver: disk, name: "n3", id: "i-3", zone: "z2"})

	return b
}

func with(change func(*options)) options {
	o := defaultOptions()
	change(&o)

	return o
}

func made(t *testing.T, b *backend, w wish) volume {
	t.Helper()

	w.driver = disk

	v, err := b.create(w)
	if err != nil {
		t.Fatal(err)
	}

	return v
}

func expect(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()

	if got := status.Code(err); got != want {
		t.Errorf("%s: got %s (%v), want %s", what, got, err, want)
	}
}

func TestWhatIsCreated(t *testing.T) {
	b := stand(with(func(o *options) { o.Capacity = 10 * gib }))
	first := made(t, b, wish{name: "a", required: 2 * gib, zones: []string{"z2", "z1"}})

	if first.zone != "z2" || first.size != 2*gib || first.tags["kubernetes.io/cluster/test"] != "owned" {
		t.Errorf("got %+v", first)
	}

	snap, err := b.snap(disk, "s", first.handle, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		what string
		wish wish
		want codes.Code
	}{
		{"the same again", wish{name: "a", required: 2 * gib}, codes.OK},
		{"the same name, larger", wish{name: "a", required: 3 * gib}, codes.AlreadyExists},
		{"the same name, other source", wish{name: "a", required: 2 * gib, source: snap.id, snapshot: true}, codes.AlreadyExists},
		{"no name", wish{required: gib}, codes.InvalidArgument},
		{"a limit below a whole GiB", wish{name: "b", required: 1, limit: 1000}, codes.OutOfRange},
		{"an unknown snapshot", wish{name: "b", source: "snap-x", snapshot: true}, codes.NotFound},
		{"an unknown volume to clone", wish{name: "b", source: "vol-x"}, codes.NotFound},
		{"a restore smaller than its source", wish{name: "b", required: gib, source: snap.id, snapshot: true}, codes.OutOfRange},
		{"a clone in another zone", wish{name: "b", required: 2 * gib, source: first.handle, zones: []string{"z1"}}, codes.ResourceExhausted},
		{"more than the pool has", wish{name: "b", required: 9 * gib}, codes.ResourceExhausted},
	} {
		c.wish.driver = disk
		_, err := b.create(c.wish)
		expect(t, c.what, err, c.want)
	}

	if count := len(b.listVolumes()); count != 1 {
		t.Errorf("%d volumes", count)
	}
}

func TestWhereAVolumeMayBePublished(t *testing.T) {
	shared := func(o *options) { o.Exclusive = false }

	for _, c := range []struct {
		what    string
		options options
		before  []string
		node    string
		want    codes.Code
	}{
		{"a free volume", defaultOptions(), nil, "i-1", codes.OK},
		{"the same node again", defaultOptions(), []string{"i-1"}, "i-1", codes.OK},
		{"a second node", defaultOptions(), []string{"i-1"}, "i-2", codes.FailedPrecondition},
		{"a second node of a shared backend", with(shared), []string{"i-1"}, "i-2", codes.OK},
		{"another zone", defaultOptions(), nil, "i-3", codes.InvalidArgument},
		{"another zone without zones", with(func(o *options) { o.Topology = false }), nil, "i-3", codes.OK},
		{"a node nobody knows", defaultOptions(), nil, "i-9", codes.NotFound},
	} {
		b := stand(c.options)
		v := made(t, b, wish{name: "a"})

		for _, id := range c.before {
			expect(t, c.what+" (before)", b.publish(disk, v.handle, id), codes.OK)
		}

		expect(t, c.what, b.publish(disk, v.handle, c.node), c.want)
	}
}

func TestAMachineHoldsNoMoreThanItsLimit(t *testing.T) {
	b := stand(defaultOptions())

	for _, name := range []string{"a", "b"} {
		expect(t, name, b.publish(disk, made(t, b, wish{name: name}).handle, "i-1"), codes.OK)
	}

	expect(t, "a third", b.publish(disk, made(t, b, wish{name: "c"}).handle, "i-1"), codes.ResourceExhausted)
}

func TestDeletion(t *testing.T) {
	b := stand(defaultOptions())
	v := made(t, b, wish{name: "a"})

	expect(t, "publish", b.publish(disk, v.handle, "i-1"), codes.OK)
	expect(t, "while published", b.delete(disk, v.handle), codes.FailedPrecondition)
	b.unpublish(disk, v.handle, "i-1")
	expect(t, "afterwards", b.delete(disk, v.handle), codes.OK)
	expect(t, "again", b.delete(disk, v.handle), codes.OK)

	if left := b.listVolumes(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestADriverSeesOnlyItsOwn(t *testing.T) {
	b := stand(defaultOptions())
	b.setOptions("other.sim", defaultOptions())
	v := made(t, b, wish{name: "a"})

	expect(t, "delete", b.delete("other.sim", v.handle), codes.OK)
	expect(t, "publish", b.publish("other.sim", v.handle, "i-1"), codes.NotFound)

	if len(b.listVolumes()) != 1 {
		t.Error("another driver deleted it")
	}
}

func TestTheRefereeSeesHarmAsItHappens(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(b *backend, handle string)
		want []string
	}{
		{"nothing but work", func(b *backend, handle string) {
			b.unmount(disk, handle, "i-1", "/t")
			b.unstage(disk, handle, "i-1")
			b.unpublish(disk, handle, "i-1")
		}, nil},
		{"detached while mounted", func(b *backend, handle string) {
			b.unpublish(disk, handle, "i-1")
		}, []string{"unpublished-while-staged"}},
		{"a second writer", func(b *backend, handle string) {
			b.unpublish(disk, handle, "i-1")
			expect(t, "publish", b.publish(disk, handle, "i-2"), codes.OK)
			expect(t, "stage", b.stage(disk, handle, "i-2"), codes.OK)
			expect(t, "stage again", b.stage(disk, handle, "i-2"), codes.OK)
		}, []string{"unpublished-while-staged", "two-writers"}},
		{"lost while mounted", func(b *backend, handle string) {
			b.lose(handle)
		}, []string{"deleted-while-staged"}},
		{"detached after a restart", func(b *backend, handle string) {
			b.restarted("i-1")
			b.unpublish(disk, handle, "i-1")
		}, nil},
		{"the machine is gone", func(b *backend, handle string) {
			b.removed(disk, "n1")
			expect(t, "publish", b.publish(disk, handle, "i-2"), codes.OK)
			expect(t, "stage", b.stage(disk, handle, "i-2"), codes.OK)
		}, nil},
	} {
		b := stand(defaultOptions())
		v := made(t, b, wish{name: "a"})

		expect(t, "stage before publish", b.stage(disk, v.handle, "i-1"), codes.FailedPrecondition)
		expect(t, "publish", b.publish(disk, v.handle, "i-1"), codes.OK)
		expect(t, "mount before stage", b.mount(disk, v.handle, "i-1", "/t"), codes.FailedPrecondition)
		expect(t, "stage", b.stage(disk, v.handle, "i-1"), codes.OK)
		expect(t, "mount", b.mount(disk, v.handle, "i-1", "/t"), codes.OK)
		c.do(b, v.handle)

		var got []string
		for _, h := range b.listHarms(0) {
			got = append(got, h.kind)
		}

		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}

func TestSnapshotsAndGrowth(t *testing.T) {
	b := stand(with(func(o *options) { o.SnapshotReady = 1000; o.Capacity = 4 * gib }))
	v := made(t, b, wish{name: "a"})
	other := made(t, b, wish{name: "b"})

	s, err := b.snap(disk, "s", v.handle, nil)
	expect(t, "snapshot", err, codes.OK)

	again, err := b.snap(disk, "s", v.handle, nil)
	expect(t, "again", err, codes.OK)

	if again.id != s.id || b.ready(s) {
		t.Errorf("got %+v, ready %v", again, b.ready(s))
	}

	_, err = b.snap(disk, "s", other.handle, nil)
	expect(t, "of another volume", err, codes.AlreadyExists)

	_, err = b.snap(disk, "t", "vol-x", nil)
	expect(t, "of no volume", err, codes.NotFound)

	size, err := b.expand(disk, v.handle, 2*gib+1, 0)
	expect(t, "grow", err, codes.OK)

	if size != 3*gib {
		t.Errorf("grew to %d", size)
	}

	size, err = b.expand(disk, v.handle, gib, 0)
	expect(t, "never shrinks", err, codes.OK)

	if size != 3*gib {
		t.Errorf("shrank to %d", size)
	}

	_, err = b.expand(disk, v.handle, 4*gib, 0)
	expect(t, "beyond the pool", err, codes.ResourceExhausted)
}

func TestFaultsHappenToTheCallsTheyName(t *testing.T) {
	publish := &csi.ControllerPublishVolumeRequest{VolumeId: "vol-1", NodeId: "i-1"}
	probe := &csi.ProbeRequest{}

	for _, c := range []struct {
		what    string
		fault   fault
		rpc     string
		request any
		want    codes.Code
		reached bool
	}{
		{"its call", fault{RPC: "ControllerPublishVolume", Code: "Internal"}, "ControllerPublishVolume", publish, codes.Internal, false},
		{"another call", fault{RPC: "DeleteVolume", Code: "Internal"}, "ControllerPublishVolume", publish, codes.OK, true},
		{"any call", fault{RPC: "*", Code: "Unavailable"}, "ControllerPublishVolume", publish, codes.Unavailable, false},
		{"any call, but not a probe", fault{RPC: "*", Code: "Unavailable"}, "Probe", probe, codes.OK, true},
		{"its volume", fault{RPC: "*", Volume: "vol-1", Code: "Internal"}, "ControllerPublishVolume", publish, codes.Internal, false},
		{"another volume", fault{RPC: "*", Volume: "vol-2", Code: "Internal"}, "ControllerPublishVolume", publish, codes.OK, true},
		{"its node, by name", fault{RPC: "*", Node: "n1", Code: "Internal"}, "ControllerPublishVolume", publish, codes.Internal, false},
		{"another node", fault{RPC: "*", Node: "n2", Code: "Internal"}, "ControllerPublishVolume", publish, codes.OK, true},
		{"another driver", fault{RPC: "*", Driver: "x", Code: "Internal"}, "ControllerPublishVolume", publish, codes.OK, true},
		{"done, but not told", fault{RPC: "*", Code: "DeadlineExceeded", Applied: true}, "ControllerPublishVolume", publish, codes.DeadlineExceeded, true},
		{"only slow", fault{RPC: "*", DelayMs: 1}, "ControllerPublishVolume", publish, codes.OK, true},
	} {
		d := newDesk(stand(defaultOptions()))
		if _, err := d.post(c.fault); err != nil {
			t.Fatal(err)
		}

		reached := false
		_, err := d.intercept(disk, "")(context.Background(), c.request, &grpc.UnaryServerInfo{FullMethod: "/csi.v1/" + c.rpc},
			func(context.Context, any) (any, error) {
				reached = true

				return nil, nil
			})
		expect(t, c.what, err, c.want)

		if reached != c.reached {
			t.Errorf("%s: reached %v", c.what, reached)
		}
	}
}

func TestAFaultEndsAndLetsGo(t *testing.T) {
	d := newDesk(stand(defaultOptions()))
	answer := d.intercept(disk, "")
	ask := func() error {
		_, err := answer(context.Background(), &csi.DeleteVolumeRequest{VolumeId: "v"}, &grpc.UnaryServerInfo{FullMethod: "/csi.v1/DeleteVolume"},
			func(context.Context, any) (any, error) { return nil, nil })

		return err
	}

	if _, err := d.post(fault{RPC: "DeleteVolume", Code: "Aborted", Message: "busy", Times: 1}); err != nil {
		t.Fatal(err)
	}

	expect(t, "once", ask(), codes.Aborted)
	expect(t, "and no more", ask(), codes.OK)

	id, err := d.post(fault{RPC: "DeleteVolume", DelayMs: int64(time.Hour / time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}

	answered := make(chan error)
	go func() { answered <- ask() }()

	for d.listFaults()[1].Hits == 0 {
		time.Sleep(time.Millisecond)
	}

	if !d.forget(id) || d.forget(id) {
		t.Error("a fault is forgotten once")
	}

	expect(t, "let go", <-answered, codes.OK)

	calls := d.callsAfter(1)
	if len(calls) != 2 || calls[0].Seq != 2 || calls[1].RPC != "DeleteVolume" || calls[1].Volume != "v" {
		t.Errorf("got %+v", calls)
	}
}

func TestFaultsThatMakeNoSenseAreRefused(t *testing.T) {
	d := newDesk(stand(defaultOptions()))

	for _, f := range []fault{
		{Code: "Internal"},
		{RPC: "*"},
		{RPC: "*", Code: "INTERNAL"},
		{RPC: "*", Code: "OK"},
		{RPC: "*", Code: "Internal", Times: -1},
		{RPC: "*", DelayMs: -1},
	} {
		if _, err := d.post(f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}

func TestTheClassParameterFails(t *testing.T) {
	for parameter, want := range map[string]codes.Code{
		"":                                  codes.OK,
		"InvalidArgument:type x is unknown": codes.InvalidArgument,
		"ResourceExhausted:":                codes.ResourceExhausted,
		"nonsense":                          codes.InvalidArgument,
	} {
		expect(t, parameter, failing(parameter), want)
	}
}

func TestDriverFlags(t *testing.T) {
	d := drivers{}

	if err := d.Set("a.sim,attach=false,capacity=5"); err != nil {
		t.Fatal(err)
	}

	want := with(func(o *options) { o.Attach = false; o.Capacity = 5 })
	if d["a.sim"] != want {
		t.Errorf("got %+v", d["a.sim"])
	}

	for _, text := range []string{"", "a,attach=maybe", "a,colour=red", "a,capacity=x"} {
		if err := d.Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
