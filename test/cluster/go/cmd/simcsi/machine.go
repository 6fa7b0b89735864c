package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// longestSocket is what fits a unix socket's address.
const longestSocket = 107

// nodeService is a driver on one machine. Nothing is really mounted; the backend writes down what would be.
type nodeService struct {
	csi.UnimplementedNodeServer

	driver  string
	name    string
	nodeID  string
	backend *backend
}

func (n *nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	o, _ := n.backend.optionsOf(n.driver)
	types := []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}

	if o.Expand {
		types = append(types, csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	}

	list := []*csi.NodeServiceCapability{}
	for _, t := range types {
		list = append(list, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: t},
		}})
	}

	return &csi.NodeGetCapabilitiesResponse{Capabilities: list}, nil
}

func (n *nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	known, found := n.backend.nodeOf(n.driver, n.name)
	if !found {
		return nil, status.Errorf(codes.NotFound, "machine %s not found", n.name)
	}

	answer := &csi.NodeGetInfoResponse{NodeId: known.id, MaxVolumesPerNode: known.limit}

	if o, _ := n.backend.optionsOf(n.driver); o.Topology {
		answer.AccessibleTopology = &csi.Topology{Segments: map[string]string{zoneKey(n.driver): known.zone}}
	}

	return answer, nil
}

func (n *nodeService) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := n.backend.stage(n.driver, r.GetVolumeId(), n.nodeID); err != nil {
		return nil, err
	}

	return &csi.NodeStageVolumeResponse{}, nil
}

func (n *nodeService) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	n.backend.unstage(n.driver, r.GetVolumeId(), n.nodeID)

	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n *nodeService) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}

	if err := n.backend.mount(n.driver, r.GetVolumeId(), n.nodeID, r.GetTargetPath()); err != nil {
		return nil, err
	}

	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *nodeService) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	n.backend.unmount(n.driver, r.GetVolumeId(), n.nodeID, r.GetTargetPath())

	if err := os.RemoveAll(r.GetTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}

	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *nodeService) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	size, found := n.backend.size(n.driver, r.GetVolumeId())
	if !found {
		return nil, status.Errorf(codes.NotFound, "volume %s not found", r.GetVolumeId())
	}

	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}

// registrar tells a kubelet that the driver is there, and hears whether the kubelet took it.
type registrar struct {
	registration.UnimplementedRegistrationServer

	driver   string
	endpoint string
	heard    func(bool)
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.driver,
		Endpoint:          r.endpoint,
		SupportedVersions: []string{version},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	r.heard(s.GetPluginRegistered())

	if !s.GetPluginRegistered() {
		log.Printf("%s was refused: %s", r.endpoint, s.GetError())
	}

	return &registration.RegistrationStatusResponse{}, nil
}

// machines serve the drivers on all nodes.
type machines struct {
	mu      sync.Mutex
	backend *backend
	desk    *desk
	served  map[nodeKey]*servedNode
}

type servedNode struct {
	root       string
	plugin     *grpc.Server
	register   *grpc.Server
	registered bool
}

func newMachines(b *backend, d *desk) *machines {
	return &machines{backend: b, desk: d, served: map[nodeKey]*servedNode{}}
}

func pluginSocket(root, driver string) string {
	return filepath.Join(root, "plugins", driver, "csi.sock")
}

func registrationSocket(root, driver string) string {
	return filepath.Join(root, "plugins_registry", driver+"-reg.sock")
}

func (m *machines) add(n node, root string) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	key := nodeKey{n.driver, n.name}
	m.stop(key)
	m.backend.addNode(n)

	socket := pluginSocket(root, n.driver)

	// The machine may be the same one after its root was emptied: what stands there is nobody's.
	server := grpc.NewServer(grpc.UnaryInterceptor(m.desk.intercept(n.driver, n.id)))
	csi.RegisterIdentityServer(server, &identity{driver: n.driver, backend: m.backend})
	csi.RegisterNodeServer(server, &nodeService{driver: n.driver, name: n.name, nodeID: n.id, backend: m.backend})

	if err := serve(server, socket); err != nil {
		return err
	}

	m.served[key] = &servedNode{root: root, plugin: server}

	return m.registerLocked(key)
}

// register opens the registration sockets of a machine: of one driver, or of all for an empty name.
func (m *machines) register(name, driver string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	keys := m.keys(name, driver)
	for _, key := range keys {
		if err := m.registerLocked(key); err != nil {
			return false, err
		}
	}

	return len(keys) > 0, nil
}

func (m *machines) unregister(name, driver string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	keys := m.keys(name, driver)
	for _, key := range keys {
		m.unregisterLocked(key)
	}

	return len(keys) > 0
}

func (m *machines) limit(name, driver string, limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	keys := m.keys(name, driver)
	for _, key := range keys {
		m.backend.limitNode(key.driver, key.name, limit)
	}

	return len(keys) > 0
}

func (m *machines) remove(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	keys := m.keys(name, "")
	for _, key := range keys {
		m.stop(key)
		m.backend.removed(key.driver, key.name)
	}

	return len(keys) > 0
}

func (m *machines) rootOf(key nodeKey) (string, bool, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	s, found := m.served[key]
	if !found {
		return "", false, false
	}

	return s.root, s.registered, true
}

func (m *machines) keys(name, driver string) []nodeKey {
	keys := []nodeKey{}

	for key := range m.served {
		if key.name == name && (driver == "" || key.driver == driver) {
			keys = append(keys, key)
		}
	}

	return keys
}

func (m *machines) registerLocked(key nodeKey) error {
	s := m.served[key]
	if s.register != nil {
		return nil
	}

	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, &registrar{
		driver:   key.driver,
		endpoint: pluginSocket(s.root, key.driver),
		heard: func(taken bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			s.registered = taken
		},
	})

	if err := serve(server, registrationSocket(s.root, key.driver)); err != nil {
		return err
	}

	s.register = server

	return nil
}

// unregisterLocked closes the socket, which removes its file: that is what the kubelet sees.
func (m *machines) unregisterLocked(key nodeKey) {
	s := m.served[key]
	if s.register == nil {
		return
	}

	server := s.register
	s.register = nil
	s.registered = false

	// Stop waits for calls that may wait for the lock held here.
	go server.Stop()
	forget(registrationSocket(s.root, key.driver))
}

func (m *machines) stop(key nodeKey) {
	s, found := m.served[key]
	if !found {
		return
	}

	m.unregisterLocked(key)
	delete(m.served, key)

	go s.plugin.Stop()
	forget(pluginSocket(s.root, key.driver))
}

// serve listens on a socket and serves it until the server is stopped.
func serve(server *grpc.Server, socket string) error {
	if len(socket) > longestSocket {
		return fmt.Errorf("socket %s has %d characters, %d fit", socket, len(socket), longestSocket)
	}

	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}

	forget(socket)

	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}

	// A later server may already stand under the same name when this one closes.
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}

	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Printf("%s: %v", socket, err)
		}
	}()

	return nil
}

func forget(socket string) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Printf("%s: %v", socket, err)
	}
}
