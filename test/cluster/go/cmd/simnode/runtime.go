package main

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	critest "k8s.io/cri-api/pkg/apis/testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The name of an image says what a container of it does; the registry, folder and tag before that are free.
var (
	exits = regexp.MustCompile(`(?:^|/)exit:(\d{1,3})-(\d+)$`)
	hangs = regexp.MustCompile(`(?:^|/)hang(?::[^/]*)?$`)
)

// behaviour is what a container does by itself. The zero value runs until it is stopped.
type behaviour struct {
	exits bool
	code  int32
	after time.Duration
	hangs bool
}

func behaviourOf(image string) behaviour {
	if hangs.MatchString(image) {
		return behaviour{hangs: true}
	}

	match := exits.FindStringSubmatch(image)
	if match == nil {
		return behaviour{}
	}

	code, codeErr := strconv.ParseInt(match[1], 10, 32)
	seconds, secondsErr := strconv.ParseInt(match[2], 10, 32)

	if codeErr != nil || secondsErr != nil {
		return behaviour{}
	}

	return behaviour{exits: true, code: int32(code), after: time.Duration(seconds) * time.Second}
}

// containers is the runtime: kubemark's fake, and processes that end by themselves or refuse to.
type containers struct {
	*critest.FakeRuntimeService
}

func newRuntime() *containers {
	fake := critest.NewFakeRuntimeService()
	fake.FakeStatus = &runtimeapi.RuntimeStatus{
		Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			{Type: runtimeapi.NetworkReady, Status: true},
		},
	}

	return &containers{FakeRuntimeService: fake}
}

func newImages() *critest.FakeImageService {
	images := critest.NewFakeImageService()
	images.SetFakeImageSize(1 << 20)

	return images
}

// Close is asked for by the interface; there is no connection to close.
func (c *containers) Close(context.Context) error {
	return nil
}

func (c *containers) StartContainer(ctx context.Context, id string) error {
	if err := c.FakeRuntimeService.StartContainer(ctx, id); err != nil {
		return err
	}

	does := c.behaviour(id)
	if does.exits {
		time.AfterFunc(does.after, func() { c.exit(id, does.code) })
	}

	return nil
}

// StopContainer of a process that hangs in the kernel lets the grace pass and fails, again and again.
func (c *containers) StopContainer(ctx context.Context, id string, grace int64) error {
	if !c.hanging(id) {
		return c.FakeRuntimeService.StopContainer(ctx, id, grace)
	}

	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(grace) * time.Second):
	}

	return status.Errorf(codes.DeadlineExceeded, "failed to stop container %q: context deadline exceeded", id)
}

func (c *containers) StopPodSandbox(ctx context.Context, id string) error {
	if c.sandboxHangs(id) {
		return status.Errorf(codes.DeadlineExceeded, "failed to stop sandbox %q: context deadline exceeded", id)
	}

	return c.FakeRuntimeService.StopPodSandbox(ctx, id)
}

func (c *containers) exit(id string, code int32) {
	c.Lock()
	defer c.Unlock()

	container, found := c.Containers[id]
	if !found || container.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}

	container.State = runtimeapi.ContainerState_CONTAINER_EXITED
	container.FinishedAt = time.Now().UnixNano()
	container.ExitCode = code
	container.Reason = "Completed"

	if code != 0 {
		container.Reason = "Error"
	}
}

func (c *containers) behaviour(id string) behaviour {
	c.Lock()
	defer c.Unlock()

	container, found := c.Containers[id]
	if !found {
		return behaviour{}
	}

	return behaviourOf(imageOf(container))
}

func (c *containers) hanging(id string) bool {
	c.Lock()
	defer c.Unlock()

	container, found := c.Containers[id]

	return found && hangsNow(container)
}

func (c *containers) sandboxHangs(id string) bool {
	c.Lock()
	defer c.Unlock()

	for _, container := range c.Containers {
		if container.SandboxID == id && hangsNow(container) {
			return true
		}
	}

	return false
}

func hangsNow(container *critest.FakeContainer) bool {
	running := container.State == runtimeapi.ContainerState_CONTAINER_RUNNING

	return running && behaviourOf(imageOf(container)).hangs
}

// imageOf is the name as the pod has it: the kubelet hands the runtime an id, and keeps the name beside it.
func imageOf(container *critest.FakeContainer) string {
	if named := container.Image.GetUserSpecifiedImage(); named != "" {
		return named
	}

	return container.Image.GetImage()
}
