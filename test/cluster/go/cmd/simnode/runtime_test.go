package main

import (
	"testing"
	"time"
)

func TestTheImageNameSaysWhatAContainerDoes(t *testing.T) {
	for image, want := range map[string]behaviour{
		"sim/exit:0-2":                  {exits: true, after: 2 * time.Second},
		"registry.test/x/exit:137-0":    {exits: true, code: 137},
		"exit:1-30":                     {exits: true, code: 1, after: 30 * time.Second},
		"sim/hang":                      {hangs: true},
		"sim/hang:latest":               {hangs: true},
		"sim/run":                       {},
		"sim/exit":                      {},
		"sim/exit:latest":               {},
		"sim/no-exit:0-2":               {},
		"sim/hangar":                    {},
		"sim/change":                    {},
		"sim/exit:1-99999999999999":     {},
		"registry.test:5000/hang/nginx": {},
	} {
		if got := behaviourOf(image); got != want {
			t.Errorf("%s: got %+v, want %+v", image, got, want)
		}
	}
}

func TestLabelsOfTheNode(t *testing.T) {
	got, err := nodeLabels("a=b,c=", "z1", "r1")
	if err != nil {
		t.Fatal(err)
	}

	for key, want := range map[string]string{
		"a": "b", "c": "", "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1",
	} {
		if value, found := got[key]; !found || value != want {
			t.Errorf("%s: got %q", key, value)
		}
	}

	for _, text := range []string{"a", "=b", "a=b,c"} {
		if _, err := nodeLabels(text, "", ""); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
