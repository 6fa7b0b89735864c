package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const gib = 1 << 30

// options are what differs between the kinds of storage that exist.
type options struct {
	Attach        bool  `json:"attach"`
	Exclusive     bool  `json:"exclusive"`
	Topology      bool  `json:"topology"`
	Expand        bool  `json:"expand"`
	Capacity      int64 `json:"capacity"`
	SnapshotReady int64 `json:"snapshotReady"`
}

func defaultOptions() options {
	return options{Attach: true, Exclusive: true, Topology: true, Expand: true}
}

type volume struct {
	driver    string
	handle    string
	name      string
	size      int64
	zone      string
	source    string
	tags      map[string]string
	createdAt time.Time
	// published is what the backend grants; staged and mounted are what the machines hold, whatever anybody believes.
	published map[string]bool
	staged    map[string]bool
	mounted   map[string]map[string]bool
}

type snapshot struct {
	driver    string
	id        string
	name      string
	source    string
	size      int64
	tags      map[string]string
	createdAt time.Time
}

// node is a machine as one driver knows it.
type node struct {
	driver string
	name   string
	id     string
	zone   string
	region string
	limit  int64
}

type nodeKey struct {
	driver string
	name   string
}

// harm is a moment in which data was in danger: kept as it happens, so that no poll can miss it.
type harm struct {
	seq    int
	at     time.Time
	kind   string
	driver string
	volume string
	nodes  []string
}

// backend is the storage behind all drivers of one process. It refuses what real storage refuses and obeys what real
// storage obeys, and it is the referee: it alone knows what is attached and mounted where.
type backend struct {
	mu        sync.Mutex
	now       func() time.Time
	cluster   string
	drivers   map[string]*options
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	nodes     map[nodeKey]*node
	harms     []harm
	made      int
}

func newBackend(now func() time.Time, cluster string) *backend {
	return &backend{
		now:       now,
		cluster:   cluster,
		drivers:   map[string]*options{},
		volumes:   map[string]*volume{},
		snapshots: map[string]*snapshot{},
		nodes:     map[nodeKey]*node{},
	}
}

// wish is a volume somebody asks for.
type wish struct {
	driver   string
	name     string
	required int64
	limit    int64
	// zones are those allowed, the best first; none means any.
	zones    []string
	source   string
	snapshot bool
	tags     map[string]string
}

func (b *backend) create(w wish) (volume, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if w.name == "" {
		return volume{}, status.Error(codes.InvalidArgument, "name is missing")
	}

	for _, v := range b.volumes {
		if v.driver == w.driver && v.name == w.name {
			return b.same(v, w)
		}
	}

	size := roundUp(max(w.required, 1))
	if w.limit > 0 && size > w.limit {
		return volume{}, status.Errorf(codes.OutOfRange, "volumes are made in whole GiB: %d bytes exceed the limit of %d", size, w.limit)
	}

	zones := w.zones

	if w.source != "" {
		smallest, zone, err := b.origin(w)
		if err != nil {
			return volume{}, err
		}

		if size < smallest {
			return volume{}, status.Errorf(codes.OutOfRange, "requested size %d is less than the size %d of the source %s", size, smallest, w.source)
		}

		if zone != "" {
			zones = slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return z != zone })
			if len(w.zones) > 0 && len(zones) == 0 {
				return volume{}, status.Errorf(codes.ResourceExhausted, "source volume %s is in zone %s, which is not among the zones asked for", w.source, zone)
			}

			zones = []string{zone}
		}
	}

	if free, limited := b.free(w.driver); limited && size > free {
		return volume{}, status.Errorf(codes.ResourceExhausted, "insufficient capacity: %d bytes asked for, %d free", size, free)
	}

	v := &volume{
		driver: w.driver,
		name:   w.name,
		handle: b.id("vol"),
		size:   size,
		zone:   b.zone(w.driver, zones),
		source: w.source,
		tags:   b.tags(w.tags),
	}
	b.keep(v)

	return v.copy(), nil
}

// same answers a repeated request: the same volume, if it is still what is asked for.
func (b *backend) same(v *volume, w wish) (volume, error) {
	fits := v.size >= w.required && (w.limit == 0 || v.size <= w.limit)
	if !fits || v.source != w.source {
		return volume{}, status.Errorf(codes.AlreadyExists, "volume %s exists as %s with another size or source", w.name, v.handle)
	}

	return v.copy(), nil
}

// origin is the size that a copy needs at least and the zone it is bound to; snapshots are not bound to one.
func (b *backend) origin(w wish) (int64, string, error) {
	if w.snapshot {
		s, found := b.snapshots[w.source]
		if !found {
			return 0, "", status.Errorf(codes.NotFound, "snapshot %s not found", w.source)
		}

		return s.size, "", nil
	}

	v, found := b.volumes[w.source]
	if !found {
		return 0, "", status.Errorf(codes.NotFound, "source volume %s not found", w.source)
	}

	return v.size, v.zone, nil
}

func (b *backend) delete(driver, handle string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return nil
	}

	if len(v.published) > 0 && b.drivers[driver].Attach {
		return status.Errorf(codes.FailedPrecondition, "volume %s is still attached to node %s", handle, sorted(v.published)[0])
	}

	b.remove(v)

	return nil
}

// lose takes a volume away without asking: the backend's own trouble, or somebody with a console.
func (b *backend) lose(handle string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.volumes[handle]
	if found {
		b.remove(v)
	}

	return found
}

func (b *backend) remove(v *volume) {
	if len(v.staged) > 0 {
		b.harmed("deleted-while-staged", v, sorted(v.staged))
	}

	delete(b.volumes, v.handle)
}

func (b *backend) seed(v volume) (volume, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if v.handle == "" {
		v.handle = b.id("vol")
	}

	if _, found := b.volumes[v.handle]; found {
		return volume{}, fmt.Errorf("volume %s exists", v.handle)
	}

	if v.name == "" {
		v.name = v.handle
	}

	if v.size == 0 {
		v.size = gib
	}

	if v.zone == "" {
		v.zone = b.zone(v.driver, nil)
	}

	if v.tags == nil {
		v.tags = map[string]string{}
	}

	b.keep(&v)

	return v.copy(), nil
}

func (b *backend) publish(driver, handle, nodeID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return status.Errorf(codes.NotFound, "volume %s not found", handle)
	}

	n, found := b.nodeByID(driver, nodeID)
	if !found {
		return status.Errorf(codes.NotFound, "node %s not found", nodeID)
	}

	if v.published[nodeID] {
		return nil
	}

	o := b.drivers[driver]
	if o.Topology && v.zone != n.zone {
		return status.Errorf(codes.InvalidArgument, "volume %s is in zone %s, node %s is in zone %s", handle, v.zone, nodeID, n.zone)
	}

	if o.Exclusive && len(v.published) > 0 {
		return status.Errorf(codes.FailedPrecondition, "volume %s is already attached to node %s", handle, sorted(v.published)[0])
	}

	if n.limit > 0 && b.publishedOn(driver, nodeID) >= n.limit {
		return status.Errorf(codes.ResourceExhausted, "node %s holds %d volumes, as many as fit", nodeID, n.limit)
	}

	v.published[nodeID] = true

	return nil
}

// unpublish obeys even while the volume is mounted, as clouds do; that is a harm, and is written down as one.
func (b *backend) unpublish(driver, handle, nodeID string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return
	}

	from := []string{nodeID}
	if nodeID == "" {
		from = sorted(v.published)
	}

	for _, id := range from {
		b.takeFrom(v, id)
	}
}

func (b *backend) takeFrom(v *volume, nodeID string) {
	if !v.published[nodeID] {
		return
	}

	delete(v.published, nodeID)

	if v.staged[nodeID] {
		b.harmed("unpublished-while-staged", v, []string{nodeID})
	}
}

// force attaches or detaches behind everybody's back.
func (b *backend) force(handle, nodeID string, attached bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.volumes[handle]
	if !found {
		return false
	}

	if attached {
		v.published[nodeID] = true
	} else {
		b.takeFrom(v, nodeID)
	}

	return true
}

func (b *backend) stage(driver, handle, nodeID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return status.Errorf(codes.NotFound, "volume %s not found", handle)
	}

	o := b.drivers[driver]
	if o.Attach && o.Exclusive && !v.published[nodeID] {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not attached to node %s: no such device", handle, nodeID)
	}

	if v.staged[nodeID] {
		return nil
	}

	v.staged[nodeID] = true

	if o.Exclusive && len(v.staged) > 1 {
		b.harmed("two-writers", v, sorted(v.staged))
	}

	return nil
}

func (b *backend) unstage(driver, handle, nodeID string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if v, found := b.find(driver, handle); found {
		delete(v.staged, nodeID)
	}
}

func (b *backend) mount(driver, handle, nodeID, target string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return status.Errorf(codes.NotFound, "volume %s not found", handle)
	}

	if !v.staged[nodeID] {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not staged on node %s", handle, nodeID)
	}

	if v.mounted[nodeID] == nil {
		v.mounted[nodeID] = map[string]bool{}
	}

	v.mounted[nodeID][target] = true

	return nil
}

func (b *backend) unmount(driver, handle, nodeID, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return
	}

	delete(v.mounted[nodeID], target)

	if len(v.mounted[nodeID]) == 0 {
		delete(v.mounted, nodeID)
	}
}

func (b *backend) expand(driver, handle string, required, limit int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return 0, status.Errorf(codes.NotFound, "volume %s not found", handle)
	}

	size := max(roundUp(required), v.size)
	if limit > 0 && size > limit {
		return 0, status.Errorf(codes.OutOfRange, "volumes grow in whole GiB: %d bytes exceed the limit of %d", size, limit)
	}

	if free, limited := b.free(driver); limited && size-v.size > free {
		return 0, status.Errorf(codes.ResourceExhausted, "insufficient capacity: %d bytes more asked for, %d free", size-v.size, free)
	}

	v.size = size

	return size, nil
}

func (b *backend) size(driver, handle string) (int64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	v, found := b.find(driver, handle)
	if !found {
		return 0, false
	}

	return v.size, true
}

func (b *backend) snap(driver, name, source string, tags map[string]string) (snapshot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, s := range b.snapshots {
		if s.driver != driver || s.name != name {
			continue
		}

		if s.source != source {
			return snapshot{}, status.Errorf(codes.AlreadyExists, "snapshot %s exists as %s of another volume", name, s.id)
		}

		return *s, nil
	}

	v, found := b.find(driver, source)
	if !found {
		return snapshot{}, status.Errorf(codes.NotFound, "source volume %s not found", source)
	}

	s := &snapshot{
		driver:    driver,
		id:        b.id("snap"),
		name:      name,
		source:    source,
		size:      v.size,
		tags:      b.tags(tags),
		createdAt: b.now(),
	}
	b.snapshots[s.id] = s

	return *s, nil
}

func (b *backend) unsnap(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	_, found := b.snapshots[id]
	delete(b.snapshots, id)

	return found
}

func (b *backend) ready(s snapshot) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	wait := time.Duration(b.drivers[s.driver].SnapshotReady) * time.Millisecond

	return !b.now().Before(s.createdAt.Add(wait))
}

func (b *backend) listSnapshots() []snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()

	list := []snapshot{}
	for _, id := range slices.Sorted(maps.Keys(b.snapshots)) {
		list = append(list, *b.snapshots[id])
	}

	slices.SortStableFunc(list, func(x, y snapshot) int { return x.createdAt.Compare(y.createdAt) })

	return list
}

func (b *backend) listVolumes() []volume {
	b.mu.Lock()
	defer b.mu.Unlock()

	list := []volume{}
	for _, handle := range slices.Sorted(maps.Keys(b.volumes)) {
		list = append(list, b.volumes[handle].copy())
	}

	slices.SortStableFunc(list, func(x, y volume) int { return x.createdAt.Compare(y.createdAt) })

	return list
}

func (b *backend) listHarms(after int) []harm {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.Clone(b.harms[min(max(after, 0), len(b.harms)):])
}

// capacity is what is left to a driver: a pool that nobody limits is as good as endless.
func (b *backend) capacity(driver string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()

	free, limited := b.free(driver)
	if !limited {
		return 1 << 50
	}

	return free
}

func (b *backend) addNode(n node) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.nodes[nodeKey{n.driver, n.name}] = &n
}

func (b *backend) nodeOf(driver, name string) (node, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	n, found := b.nodes[nodeKey{driver, name}]
	if !found {
		return node{}, false
	}

	return *n, true
}

func (b *backend) listNodes() []node {
	b.mu.Lock()
	defer b.mu.Unlock()

	list := []node{}
	for _, n := range b.nodes {
		list = append(list, *n)
	}

	slices.SortFunc(list, func(x, y node) int {
		return cmp.Or(cmp.Compare(x.driver, y.driver), cmp.Compare(x.name, y.name))
	})

	return list
}

// idsOf are the ids a machine has under its drivers, from its name or one of those ids.
func (b *backend) idsOf(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()

	ids := map[string]bool{}

	for _, n := range b.nodes {
		if n.name == name || n.id == name {
			ids[n.id] = true
		}
	}

	return sorted(ids)
}

func (b *backend) limitNode(driver, name string, limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if n, found := b.nodes[nodeKey{driver, name}]; found {
		n.limit = limit
	}
}

// restarted says that a machine lost its memory: mounts do not outlive a restart, attachments do.
func (b *backend) restarted(nodeID string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, v := range b.volumes {
		delete(v.staged, nodeID)
		delete(v.mounted, nodeID)
	}
}

// removed says that a machine is gone; its storage lets go of what was attached to it.
func (b *backend) removed(driver, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	key := nodeKey{driver, name}

	n, found := b.nodes[key]
	if !found {
		return
	}

	delete(b.nodes, key)

	for _, v := range b.volumes {
		if v.driver == driver {
			delete(v.staged, n.id)
			delete(v.mounted, n.id)
			delete(v.published, n.id)
		}
	}
}

func (b *backend) optionsOf(driver string) (options, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	o, found := b.drivers[driver]
	if !found {
		return options{}, false
	}

	return *o, true
}

func (b *backend) setOptions(driver string, o options) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.drivers[driver] = &o
}

func (b *backend) driverNames() []string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.Sorted(maps.Keys(b.drivers))
}

func (b *backend) find(driver, handle string) (*volume, bool) {
	v, found := b.volumes[handle]

	return v, found && v.driver == driver
}

// nameOf is the name of a volume, for people who read the log of calls; empty when there is no such volume.
func (b *backend) nameOf(handle string) string {
	b.mu.Lock()
	defer b.mu.Unlock()

	if v, found := b.volumes[handle]; found {
		return v.name
	}

	return ""
}

func (b *backend) nodeByID(driver, id string) (*node, bool) {
	for _, n := range b.nodes {
		if n.driver == driver && n.id == id {
			return n, true
		}
	}

	return nil, false
}

func (b *backend) publishedOn(driver, nodeID string) int64 {
	count := int64(0)

	for _, v := range b.volumes {
		if v.driver == driver && v.published[nodeID] {
			count++
		}
	}

	return count
}

func (b *backend) free(driver string) (int64, bool) {
	pool := b.drivers[driver].Capacity
	if pool == 0 {
		return 0, false
	}

	for _, v := range b.volumes {
		if v.driver == driver {
			pool -= v.size
		}
	}

	return max(pool, 0), true
}

// zone is the best one allowed, or else the first that the driver has a machine in.
func (b *backend) zone(driver string, allowed []string) string {
	if !b.drivers[driver].Topology {
		return ""
	}

	if len(allowed) > 0 {
		return allowed[0]
	}

	zones := map[string]bool{}

	for _, n := range b.nodes {
		if n.driver == driver {
			zones[n.zone] = true
		}
	}

	if len(zones) == 0 {
		return ""
	}

	return sorted(zones)[0]
}

func (b *backend) tags(given map[string]string) map[string]string {
	tags := map[string]string{"kubernetes.io/cluster/" + b.cluster: "owned"}
	maps.Copy(tags, given)

	return tags
}

func (b *backend) id(kind string) string {
	b.made++

	return fmt.Sprintf("%s-%017x", kind, b.made)
}

func (b *backend) keep(v *volume) {
	v.createdAt = b.now()
	v.published = map[string]bool{}
	v.staged = map[string]bool{}
	v.mounted = map[string]map[string]bool{}
	b.volumes[v.handle] = v
}

func (b *backend) harmed(kind string, v *volume, nodes []string) {
	b.harms = append(b.harms, harm{
		seq:    len(b.harms) + 1,
		at:     b.now(),
		kind:   kind,
		driver: v.driver,
		volume: v.handle,
		nodes:  nodes,
	})
}

// copy is safe to read after the lock is given back.
func (v *volume) copy() volume {
	c := *v
	c.tags = maps.Clone(v.tags)
	c.published = maps.Clone(v.published)
	c.staged = maps.Clone(v.staged)
	c.mounted = map[string]map[string]bool{}

	for id, targets := range v.mounted {
		c.mounted[id] = maps.Clone(targets)
	}

	return c
}

func roundUp(bytes int64) int64 {
	return (bytes + gib - 1) / gib * gib
}

func sorted[V any](set map[string]V) []string {
	list := slices.Sorted(maps.Keys(set))
	if list == nil {
		return []string{}
	}

	return list
}
