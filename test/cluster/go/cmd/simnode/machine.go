package main

import (
	"context"
	"path/filepath"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
)

// configuration starts from the kubelet's own defaults and takes away only what needs a real machine: cgroups,
// iptables, servers on fixed ports, disk pressure.
func configuration(m machine) (*kubeletconfig.KubeletConfiguration, error) {
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, err
	}

	// Without it the node is not marked as managed, and attach/detach passes it by.
	config.EnableControllerAttachDetach = true
	config.RegisterNode = true
	config.ProviderID = "sim://" + m.name
	config.MaxPods = int32(m.maxPods)

	config.NodeStatusUpdateFrequency.Duration = m.statusPeriod
	config.NodeStatusReportFrequency.Duration = m.statusPeriod
	config.NodeLeaseDurationSeconds = int32(m.leaseSeconds)
	config.SyncFrequency.Duration = m.syncFrequency

	// Several kubelets share this machine: none may hold a port of it.
	config.EnableServer = false
	config.Port = 0
	config.ReadOnlyPort = 0
	config.HealthzPort = 0

	config.CgroupsPerQOS = false
	config.EnforceNodeAllocatable = nil
	config.LocalStorageCapacityIsolation = false
	config.MakeIPTablesUtilChains = false
	config.FailSwapOn = false
	config.MaxOpenFiles = 4096

	// The pretended disk has no size: nothing may be judged by how full it is.
	config.EvictionHard = map[string]string{}
	config.ImageGCHighThresholdPercent = 100
	config.ImageGCLowThresholdPercent = 99

	config.ContainerRuntimeEndpoint = "unix:///none"
	config.PodLogsDir = filepath.Join(m.root, "logs")
	config.ClusterDNS = []string{"10.96.0.10"}
	config.ClusterDomain = "cluster.local"
	config.ResolverConfig = ""

	return config, nil
}

// hardware is what cadvisor would have found: a machine with a boot id of this start.
type hardware struct {
	*cadvisortest.Fake
	info cadvisorapi.MachineInfo
}

func newHardware(m machine) *hardware {
	return &hardware{
		Fake: &cadvisortest.Fake{NodeName: m.name},
		info: cadvisorapi.MachineInfo{
			BootID:         m.bootID,
			MachineID:      "machine-" + m.name,
			SystemUUID:     "machine-" + m.name,
			InstanceID:     cadvisorapi.InstanceID(m.name),
			NumCores:       m.cores,
			MemoryCapacity: uint64(m.memory.Value()),
		},
	}
}

func (h *hardware) MachineInfo(klog.Logger) (*cadvisorapi.MachineInfo, error) {
	info := h.info

	return &info, nil
}

// ImagesFsInfo, RootFsInfo and ContainerFsInfo give the pretended disk a size, so that no kubelet event complains of none.
func (h *hardware) ImagesFsInfo(context.Context) (cadvisorapi.FsInfo, error)    { return disk(), nil }
func (h *hardware) RootFsInfo() (cadvisorapi.FsInfo, error)                     { return disk(), nil }
func (h *hardware) ContainerFsInfo(context.Context) (cadvisorapi.FsInfo, error) { return disk(), nil }

func disk() cadvisorapi.FsInfo {
	const size = 100 << 30
	inodes := uint64(6_000_000)

	return cadvisorapi.FsInfo{
		Capacity:   size,
		Available:  size / 2,
		Usage:      size / 2,
		Inodes:     &inodes,
		InodesFree: &inodes,
	}
}
