package main

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const version = "1.0.0"

// created is the answer that names a new volume.
type created interface{ GetVolume() *csi.Volume }

// zoneKey is the driver's own topology key: the kubelet makes it a label of the Node, and PVs carry it.
func zoneKey(driver string) string {
	return "topology." + driver + "/zone"
}

type identity struct {
	csi.UnimplementedIdentityServer

	driver  string
	backend *backend
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.driver, VendorVersion: version}, nil
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	o, _ := i.backend.optionsOf(i.driver)
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}

	if o.Topology {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}

	list := []*csi.PluginCapability{}
	for _, s := range services {
		list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: s},
		}})
	}

	if o.Expand {
		list = append(list, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
			VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
		}})
	}

	return &csi.GetPluginCapabilitiesResponse{Capabilities: list}, nil
}

type controller struct {
	csi.UnimplementedControllerServer

	driver  string
	backend *backend
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	o, _ := c.backend.optionsOf(c.driver)
	types := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}

	if o.Attach {
		types = append(types, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	}

	if o.Expand {
		types = append(types, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)
	}

	list := []*csi.ControllerServiceCapability{}
	for _, t := range types {
		list = append(list, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: t},
		}})
	}

	return &csi.ControllerGetCapabilitiesResponse{Capabilities: list}, nil
}

func (c *controller) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := failing(r.GetParameters()["fail"]); err != nil {
		return nil, err
	}

	if err := c.supports(r.GetVolumeCapabilities()); err != nil {
		return nil, err
	}

	w := wish{
		driver:   c.driver,
		name:     r.GetName(),
		required: r.GetCapacityRange().GetRequiredBytes(),
		limit:    r.GetCapacityRange().GetLimitBytes(),
		zones:    zonesOf(r.GetAccessibilityRequirements(), zoneKey(c.driver)),
		tags:     tagsOf(r.GetParameters()),
	}

	if s := r.GetVolumeContentSource().GetSnapshot(); s != nil {
		w.source = s.GetSnapshotId()
		w.snapshot = true
	}

	if v := r.GetVolumeContentSource().GetVolume(); v != nil {
		w.source = v.GetVolumeId()
	}

	v, err := c.backend.create(w)
	if err != nil {
		return nil, err
	}

	answer := &csi.Volume{VolumeId: v.handle, CapacityBytes: v.size, ContentSource: r.GetVolumeContentSource()}
	if v.zone != "" {
		answer.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{zoneKey(c.driver): v.zone}}}
	}

	return &csi.CreateVolumeResponse{Volume: answer}, nil
}

func (c *controller) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := c.backend.delete(c.driver, r.GetVolumeId()); err != nil {
		return nil, err
	}

	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if err := c.backend.publish(c.driver, r.GetVolumeId(), r.GetNodeId()); err != nil {
		return nil, err
	}

	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": "/dev/disk/" + r.GetVolumeId()}}, nil
}

func (c *controller) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.backend.unpublish(c.driver, r.GetVolumeId(), r.GetNodeId())

	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c *controller) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, found := c.backend.size(c.driver, r.GetVolumeId()); !found {
		return nil, status.Errorf(codes.NotFound, "volume %s not found", r.GetVolumeId())
	}

	if err := c.supports(r.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}

	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()},
	}, nil
}

func (c *controller) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return &csi.GetCapacityResponse{AvailableCapacity: c.backend.capacity(c.driver)}, nil
}

func (c *controller) ControllerExpandVolume(_ context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	size, err := c.backend.expand(c.driver, r.GetVolumeId(), r.GetCapacityRange().GetRequiredBytes(), r.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}

	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

func (c *controller) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	s, err := c.backend.snap(c.driver, r.GetName(), r.GetSourceVolumeId(), tagsOf(r.GetParameters()))
	if err != nil {
		return nil, err
	}

	return &csi.CreateSnapshotResponse{Snapshot: c.snapshot(s)}, nil
}

func (c *controller) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	c.backend.unsnap(r.GetSnapshotId())

	return &csi.DeleteSnapshotResponse{}, nil
}

func (c *controller) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	entries := []*csi.ListSnapshotsResponse_Entry{}

	for _, s := range c.backend.listSnapshots() {
		asked := (r.GetSnapshotId() == "" || r.GetSnapshotId() == s.id) && (r.GetSourceVolumeId() == "" || r.GetSourceVolumeId() == s.source)
		if s.driver == c.driver && asked {
			entries = append(entries, &csi.ListSnapshotsResponse_Entry{Snapshot: c.snapshot(s)})
		}
	}

	return &csi.ListSnapshotsResponse{Entries: entries}, nil
}

func (c *controller) snapshot(s snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:     s.id,
		SourceVolumeId: s.source,
		SizeBytes:      s.size,
		CreationTime:   timestamppb.New(s.createdAt),
		ReadyToUse:     c.backend.ready(s),
	}
}

// supports refuses what one disk cannot be: a filesystem of several machines at once.
func (c *controller) supports(capabilities []*csi.VolumeCapability) error {
	o, _ := c.backend.optionsOf(c.driver)

	for _, capability := range capabilities {
		mode := capability.GetAccessMode().GetMode().String()
		if o.Exclusive && strings.HasPrefix(mode, "MULTI_NODE") {
			return status.Errorf(codes.InvalidArgument, "access mode %s is not supported: a volume is attached to one node at a time", mode)
		}
	}

	return nil
}

// failing is what a class asks for by its parameter "fail": CODE:text.
func failing(parameter string) error {
	if parameter == "" {
		return nil
	}

	name, text, _ := strings.Cut(parameter, ":")

	code, known := codeOf[name]
	if !known {
		return status.Errorf(codes.InvalidArgument, "parameter fail: %q is not a gRPC code", name)
	}

	return status.Error(code, text)
}

// zonesOf are the zones asked for, the preferred first.
func zonesOf(r *csi.TopologyRequirement, key string) []string {
	zones := []string{}
	seen := map[string]bool{}

	for _, t := range append(r.GetPreferred(), r.GetRequisite()...) {
		zone, found := t.GetSegments()[key]
		if found && !seen[zone] {
			seen[zone] = true
			zones = append(zones, zone)
		}
	}

	return zones
}

// tagsOf turns what the sidecars say about the objects behind a volume into tags of it.
func tagsOf(parameters map[string]string) map[string]string {
	const said = "csi.storage.k8s.io/"

	tags := map[string]string{}

	for key, value := range parameters {
		if name, found := strings.CutPrefix(key, said); found {
			tags["kubernetes.io/created-for/"+name] = value
		}
	}

	return tags
}
