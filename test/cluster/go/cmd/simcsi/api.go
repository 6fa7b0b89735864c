package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"path/filepath"
	"strconv"
)

// refusal is an answer that is the asker's fault.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string {
	return r.why
}

func bad(format string, values ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, values...)}
}

func missing(format string, values ...any) error {
	return &refusal{http.StatusNotFound, fmt.Sprintf(format, values...)}
}

type done struct {
	OK bool `json:"ok"`
}

type volumeView struct {
	Driver      string            `json:"driver"`
	Handle      string            `json:"handle"`
	Name        string            `json:"name"`
	SizeBytes   int64             `json:"sizeBytes"`
	Zone        string            `json:"zone"`
	Tags        map[string]string `json:"tags"`
	Source      string            `json:"source"`
	CreatedAt   string            `json:"createdAt"`
	PublishedTo []string          `json:"publishedTo"`
	StagedOn    []string          `json:"stagedOn"`
	MountedOn   []mountView       `json:"mountedOn"`
}

type mountView struct {
	NodeID  string   `json:"nodeId"`
	Targets []string `json:"targets"`
}

type snapshotView struct {
	Driver    string            `json:"driver"`
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Source    string            `json:"source"`
	SizeBytes int64             `json:"sizeBytes"`
	Ready     bool              `json:"ready"`
	Tags      map[string]string `json:"tags"`
	CreatedAt string            `json:"createdAt"`
}

type harmView struct {
	Seq    int      `json:"seq"`
	At     string   `json:"at"`
	Kind   string   `json:"kind"`
	Driver string   `json:"driver"`
	Volume string   `json:"volume"`
	Nodes  []string `json:"nodes"`
}

type nodeView struct {
	Driver     string `json:"driver"`
	Name       string `json:"name"`
	NodeID     string `json:"nodeId"`
	Root       string `json:"root"`
	Zone       string `json:"zone"`
	Region     string `json:"region"`
	Limit      int64  `json:"limit"`
	Registered bool   `json:"registered"`
}

type optionsView struct {
	Driver string `json:"driver"`
	options
}

type api struct {
	backend  *backend
	desk     *desk
	machines *machines
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()

	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET /healthz":                     a.health,
		"GET /volumes":                     a.volumes,
		"POST /volumes":                    a.seed,
		"DELETE /volumes/{handle}":         a.lose,
		"POST /volumes/{handle}/publish":   a.force(true),
		"POST /volumes/{handle}/unpublish": a.force(false),
		"GET /snapshots":                   a.snapshots,
		"DELETE /snapshots/{id}":           a.loseSnapshot,
		"GET /calls":                       a.calls,
		"GET /harm":                        a.harm,
		"GET /faults":                      a.faults,
		"POST /faults":                     a.postFault,
		"DELETE /faults":                   a.clearFaults,
		"DELETE /faults/{id}":              a.clearFault,
		"GET /nodes":                       a.nodes,
		"POST /nodes":                      a.addNode,
		"DELETE /nodes/{name}":             a.removeNode,
		"POST /nodes/{name}/register":      a.register,
		"POST /nodes/{name}/unregister":    a.unregister,
		"POST /nodes/{name}/limit":         a.limit,
		"POST /nodes/{name}/reboot":        a.reboot,
		"GET /options":                     a.options,
		"POST /options":                    a.setOptions,
	} {
		mux.HandleFunc(pattern, respond(answer))
	}

	return mux
}

func respond(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := answer(r)
		code := http.StatusOK

		if err != nil {
			code = http.StatusInternalServerError

			var refused *refusal
			if errors.As(err, &refused) {
				code = refused.status
			}

			value = map[string]string{"error": err.Error()}
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)

		if err := json.NewEncoder(w).Encode(value); err != nil {
			log.Printf("%s %s: %v", r.Method, r.URL.Path, err)
		}
	}
}

// body reads what was posted; nothing posted is an empty object, a word nobody knows is refused.
func body(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return bad("body: %v", err)
	}

	return nil
}

func after(r *http.Request) (int, error) {
	text := r.URL.Query().Get("after")
	if text == "" {
		return 0, nil
	}

	seq, err := strconv.Atoi(text)
	if err != nil {
		return 0, bad("after=%s is not a number", text)
	}

	return seq, nil
}

func (a *api) health(*http.Request) (any, error) {
	return done{true}, nil
}

func (a *api) volumes(*http.Request) (any, error) {
	views := []volumeView{}
	for _, v := range a.backend.listVolumes() {
		views = append(views, viewVolume(v))
	}

	return views, nil
}

func viewVolume(v volume) volumeView {
	mounts := []mountView{}
	for _, id := range sorted(v.mounted) {
		mounts = append(mounts, mountView{id, sorted(v.mounted[id])})
	}

	return volumeView{
		Driver:      v.driver,
		Handle:      v.handle,
		Name:        v.name,
		SizeBytes:   v.size,
		Zone:        v.zone,
		Tags:        v.tags,
		Source:      v.source,
		CreatedAt:   stamp(v.createdAt),
		PublishedTo: sorted(v.published),
		StagedOn:    sorted(v.staged),
		MountedOn:   mounts,
	}
}

func (a *api) seed(r *http.Request) (any, error) {
	var asked struct {
		Driver    string            `json:"driver"`
		Handle    string            `json:"handle"`
		Name      string            `json:"name"`
		SizeBytes int64             `json:"sizeBytes"`
		Zone      string            `json:"zone"`
		Tags      map[string]string `json:"tags"`
	}

	if err := body(r, &asked); err != nil {
		return nil, err
	}

	if _, found := a.backend.optionsOf(asked.Driver); !found {
		return nil, bad("driver %q is not served", asked.Driver)
	}

	v, err := a.backend.seed(volume{
		driver: asked.Driver,
		handle: asked.Handle,
		name:   asked.Name,
		size:   asked.SizeBytes,
		zone:   asked.Zone,
		tags:   asked.Tags,
	})
	if err != nil {
		return nil, bad("%v", err)
	}

	return viewVolume(v), nil
}

func (a *api) lose(r *http.Request) (any, error) {
	if handle := r.PathValue("handle"); !a.backend.lose(handle) {
		return nil, missing("volume %s not found", handle)
	}

	return done{true}, nil
}

func (a *api) force(attached bool) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var asked struct {
			Node string `json:"node"`
		}

		if err := body(r, &asked); err != nil {
			return nil, err
		}

		ids := a.backend.idsOf(asked.Node)
		if len(ids) == 0 {
			return nil, missing("node %q not found", asked.Node)
		}

		for _, id := range ids {
			if handle := r.PathValue("handle"); !a.backend.force(handle, id, attached) {
				return nil, missing("volume %s not found", handle)
			}
		}

		return done{true}, nil
	}
}

func (a *api) snapshots(*http.Request) (any, error) {
	views := []snapshotView{}

	for _, s := range a.backend.listSnapshots() {
		views = append(views, snapshotView{
			Driver:    s.driver,
			ID:        s.id,
			Name:      s.name,
			Source:    s.source,
			SizeBytes: s.size,
			Ready:     a.backend.ready(s),
			Tags:      s.tags,
			CreatedAt: stamp(s.createdAt),
		})
	}

	return views, nil
}

func (a *api) loseSnapshot(r *http.Request) (any, error) {
	if id := r.PathValue("id"); !a.backend.unsnap(id) {
		return nil, missing("snapshot %s not found", id)
	}

	return done{true}, nil
}

func (a *api) calls(r *http.Request) (any, error) {
	seq, err := after(r)
	if err != nil {
		return nil, err
	}

	return a.desk.callsAfter(seq), nil
}

func (a *api) harm(r *http.Request) (any, error) {
	seq, err := after(r)
	if err != nil {
		return nil, err
	}

	views := []harmView{}
	for _, h := range a.backend.listHarms(seq) {
		views = append(views, harmView{h.seq, stamp(h.at), h.kind, h.driver, h.volume, h.nodes})
	}

	return views, nil
}

func (a *api) faults(*http.Request) (any, error) {
	return a.desk.listFaults(), nil
}

func (a *api) postFault(r *http.Request) (any, error) {
	var asked struct {
		RPC     string `json:"rpc"`
		Driver  string `json:"driver"`
		Volume  string `json:"volume"`
		Node    string `json:"node"`
		Code    string `json:"code"`
		Message string `json:"message"`
		Times   int    `json:"times"`
		DelayMs int64  `json:"delayMs"`
		Applied bool   `json:"applied"`
	}

	if err := body(r, &asked); err != nil {
		return nil, err
	}

	id, err := a.desk.post(fault{
		RPC:     asked.RPC,
		Driver:  asked.Driver,
		Volume:  asked.Volume,
		Node:    asked.Node,
		Code:    asked.Code,
		Message: asked.Message,
		Times:   asked.Times,
		DelayMs: asked.DelayMs,
		Applied: asked.Applied,
	})
	if err != nil {
		return nil, bad("%v", err)
	}

	return map[string]int{"id": id}, nil
}

func (a *api) clearFaults(*http.Request) (any, error) {
	a.desk.forget(0)

	return done{true}, nil
}

func (a *api) clearFault(r *http.Request) (any, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || id < 1 || !a.desk.forget(id) {
		return nil, missing("fault %s not found", r.PathValue("id"))
	}

	return done{true}, nil
}

func (a *api) nodes(*http.Request) (any, error) {
	views := []nodeView{}

	for _, n := range a.backend.listNodes() {
		root, registered, _ := a.machines.rootOf(nodeKey{n.driver, n.name})
		views = append(views, nodeView{n.driver, n.name, n.id, root, n.zone, n.region, n.limit, registered})
	}

	return views, nil
}

func (a *api) addNode(r *http.Request) (any, error) {
	var asked struct {
		Driver string `json:"driver"`
		Name   string `json:"name"`
		NodeID string `json:"nodeId"`
		Root   string `json:"root"`
		Zone   string `json:"zone"`
		Region string `json:"region"`
		Limit  int64  `json:"limit"`
	}

	if err := body(r, &asked); err != nil {
		return nil, err
	}

	if _, found := a.backend.optionsOf(asked.Driver); !found {
		return nil, bad("driver %q is not served", asked.Driver)
	}

	if asked.Name == "" || asked.NodeID == "" || !filepath.IsAbs(asked.Root) || asked.Limit < 0 {
		return nil, bad("name, nodeId and an absolute root are needed, and limit cannot be negative")
	}

	n := node{driver: asked.Driver, name: asked.Name, id: asked.NodeID, zone: asked.Zone, region: asked.Region, limit: asked.Limit}
	if err := a.machines.add(n, asked.Root); err != nil {
		return nil, bad("%v", err)
	}

	return done{true}, nil
}

func (a *api) removeNode(r *http.Request) (any, error) {
	return a.found(r, a.machines.remove(r.PathValue("name")))
}

// ofDriver is the body of what is done to a machine under one driver, or under all of them.
type ofDriver struct {
	Driver string `json:"driver"`
}

func (a *api) register(r *http.Request) (any, error) {
	var asked ofDriver
	if err := body(r, &asked); err != nil {
		return nil, err
	}

	found, err := a.machines.register(r.PathValue("name"), asked.Driver)
	if err != nil {
		return nil, err
	}

	return a.found(r, found)
}

func (a *api) unregister(r *http.Request) (any, error) {
	var asked ofDriver
	if err := body(r, &asked); err != nil {
		return nil, err
	}

	return a.found(r, a.machines.unregister(r.PathValue("name"), asked.Driver))
}

func (a *api) limit(r *http.Request) (any, error) {
	var asked struct {
		Driver string `json:"driver"`
		Limit  int64  `json:"limit"`
	}

	if err := body(r, &asked); err != nil {
		return nil, err
	}

	if asked.Limit < 0 {
		return nil, bad("limit cannot be negative")
	}

	return a.found(r, a.machines.limit(r.PathValue("name"), asked.Driver, asked.Limit))
}

func (a *api) reboot(r *http.Request) (any, error) {
	ids := a.backend.idsOf(r.PathValue("name"))
	for _, id := range ids {
		a.backend.restarted(id)
	}

	return a.found(r, len(ids) > 0)
}

func (a *api) found(r *http.Request, found bool) (any, error) {
	if !found {
		return nil, missing("node %s not found under that driver", r.PathValue("name"))
	}

	return done{true}, nil
}

func (a *api) options(*http.Request) (any, error) {
	views := []optionsView{}

	for _, driver := range a.backend.driverNames() {
		o, _ := a.backend.optionsOf(driver)
		views = append(views, optionsView{driver, o})
	}

	return views, nil
}

func (a *api) setOptions(r *http.Request) (any, error) {
	var asked struct {
		Driver        string `json:"driver"`
		Attach        *bool  `json:"attach"`
		Exclusive     *bool  `json:"exclusive"`
		Topology      *bool  `json:"topology"`
		Expand        *bool  `json:"expand"`
		Capacity      *int64 `json:"capacity"`
		SnapshotReady *int64 `json:"snapshotReady"`
	}

	if err := body(r, &asked); err != nil {
		return nil, err
	}

	o, found := a.backend.optionsOf(asked.Driver)
	if !found {
		return nil, bad("driver %q is not served", asked.Driver)
	}

	change(&o.Attach, asked.Attach)
	change(&o.Exclusive, asked.Exclusive)
	change(&o.Topology, asked.Topology)
	change(&o.Expand, asked.Expand)
	change(&o.Capacity, asked.Capacity)
	change(&o.SnapshotReady, asked.SnapshotReady)
	a.backend.setOptions(asked.Driver, o)

	return optionsView{asked.Driver, o}, nil
}

func change[T any](value, asked *T) {
	if asked != nil {
		*value = *asked
	}
}
