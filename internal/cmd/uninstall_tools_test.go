// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-gc/kubectl-gc/internal/delivery"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
)

// Every reason and cause is in the schema.
func TestReasonsAreInTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/schema/uninstallplan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../uninstall/plan.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?:Reason|Cause)\s+= ("\w+")`).FindAllStringSubmatch(string(code), -1)
	if len(constants) < 30 {
		t.Errorf("%d constants", len(constants))
	}
	for _, c := range constants {
		if !strings.Contains(string(text), c[1]) {
			t.Errorf("%s is not in the schema", c[1])
		}
	}
}

// A tool is a row of uninstall.Tools, what internal/delivery knows of its objects, and what a snapshot holds of them, with a help, scenarios and
// a page: this names what is missing.
func TestToolsAreComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/uninstall.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{"plan": "uninstallplan", "leftovers": "leftoversreport"} {
		text, err := os.ReadFile("../../docs/schema/" + schema + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range uninstall.Tools() {
			if !strings.Contains(string(text), `"`+tool.Name+`"`) {
				t.Errorf("%s: the schema of the %s has no such tool: docs/schema", tool.Name, name)
			}
		}
	}
	commands := newUninstall(&globals{config: genericclioptions.NewConfigFlags(false), name: "kubectl gc"})
	for _, tool := range uninstall.Tools() {
		cmd, _, err := commands.Find([]string{tool.Name})
		if err != nil || cmd.Name() != tool.Name || len(cmd.Long) < 100 || cmd.Example == "" {
			t.Errorf("%s: no command, or no help: internal/cmd, toolHelps", tool.Name)
		}
		if _, err := os.Stat(filepath.Join("../uninstall/testdata", tool.Name+".txt")); err != nil {
			t.Errorf("%s: no scenarios: internal/uninstall/testdata", tool.Name)
		}
		if !strings.Contains(string(page), "`"+tool.Name+" ") && !strings.Contains(string(page), "uninstall "+tool.Name) {
			t.Errorf("%s: docs/uninstall.md does not mention it", tool.Name)
		}
		for _, k := range tool.Kinds {
			if offline.HoldsOf(k.Resource) != offline.Parts {
				t.Errorf("%s: a snapshot has nothing of the spec of %s: internal/offline, namingFields", tool.Name, k.Resource)
			}
			if !k.Alone && !delivery.Known(k.Resource) {
				t.Errorf("%s: what %s have deployed is not known: internal/delivery", tool.Name, k.Resource)
			}
		}
	}
}
