// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// ofThisRun are the flags that say what one run does, how its writes are agreed to, and how it answers.
var ofThisRun = []string{"prepare", "yes", "interactive", "confirm", "timeout", "dry-run", "allow-incomplete", "output"}

// again is the command of this run with another flag in the place of those that are of this run alone.
func (o *uninstallOptions) again(flag string) string {
	words, names := withoutFlags(withoutToken(o.argv), o.deletion.flags, ofThisRun), []string(nil)
	if end := slices.Index(words, "--"); end >= 0 {
		words, names = words[:end], words[end:]
	}
	return o.name + " " + shell.Command(slices.Concat(words, []string{flag}, names))
}

// withoutFlags leaves flags and their values out of the words of a command.
func withoutFlags(words []string, flags *pflag.FlagSet, names []string) (kept []string) {
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return append(kept, words[i:]...)
		}
		left, value, gone := withoutFlag(words[i], flags, names)
		if left != "" {
			kept = append(kept, left)
		}
		if value {
			i++
		}
		if value && !gone && i < len(words) {
			kept = append(kept, words[i])
		}
	}
	return kept
}

// withoutFlag is what is left of a word, whether the next one is the value of its flag, and whether that goes.
func withoutFlag(word string, flags *pflag.FlagSet, names []string) (left string, value, gone bool) {
	if long, is := strings.CutPrefix(word, "--"); is {
		name, _, with := strings.Cut(long, "=")
		f := flags.Lookup(name)
		if f == nil {
			return word, false, false
		}
		if gone = slices.Contains(names, name); !gone {
			left = word
		}
		return left, !with && f.NoOptDefVal == "", gone
	}
	letters, is := strings.CutPrefix(word, "-")
	if !is || letters == "" {
		return word, false, false
	}
	left = "-"
	for i := range letters {
		f := flags.ShorthandLookup(letters[i : i+1])
		if f == nil {
			return word, false, false
		}
		end := i + 1
		if gone = slices.Contains(names, f.Name); f.NoOptDefVal == "" || strings.HasPrefix(letters[end:], "=") {
			value, end = end == len(letters), len(letters)
		}
		if !gone {
			left += letters[i:end]
		}
		if end == len(letters) {
			break
		}
	}
	if left == "-" {
		left = ""
	}
	return left, value, gone
}
