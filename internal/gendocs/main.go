// SPDX-License-Identifier: Apache-2.0

// Command gendocs writes the reference of the commands from their definitions, and house.md, the picture of the packages:
//
//	gendocs markdown|man|house DIRECTORY [PROGRAM]
//
// PROGRAM is the name of the plugin's file, kubectl-gc by default. Man pages are dated by SOURCE_DATE_EPOCH, the present otherwise.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kubectl-gc/kubectl-gc/internal/cmd"
)

func main() {
	program := "kubectl-gc"
	switch len(os.Args) {
	case 4:
		program = os.Args[3]
	case 3:
	default:
		fmt.Fprintln(os.Stderr, "usage: gendocs markdown|man|house DIRECTORY [PROGRAM]")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], program); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// generate writes the pages of one format into a directory, which it makes if
// there is none. It removes nothing.
func generate(format, dir, program string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := command(program)
	switch format {
	case "house":
		page, err := house(".")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "house.md"), []byte(page), 0o600)
	case "markdown":
		return doc.GenMarkdownTree(root, dir)
	case "man":
		return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: program, Manual: root.DisplayName()}, dir)
	}
	return fmt.Errorf("unknown format %q: must be markdown, man or house", format)
}

// command returns the plugin's command without what depends on the machine or
// the day.
func command(program string) *cobra.Command {
	root := cmd.Command(program)
	root.DisableAutoGenTag = true
	root.PersistentFlags().Lookup("cache-dir").DefValue = "~/.kube/cache"
	return root
}
