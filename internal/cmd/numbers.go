// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-gc/kubectl-gc/internal/explain"
	"github.com/kubectl-gc/kubectl-gc/internal/unstick"
	"github.com/kubectl-gc/kubectl-gc/pkg/shell"
)

// numbersLast is how long numbers mean what they meant on the screen.
const numbersLast = time.Hour

// numbered is what the numbers meant that were shown last to the same question about the same cluster.
type numbered struct {
	Time   time.Time      `json:"time"`
	Causes unstick.Screen `json:"causes"`
}

// numbersFile is where that is kept.
func (o *explainOptions) numbersFile(s *session) (string, error) {
	namespace := s.namespace
	if o.allNamespaces {
		namespace = ""
	}
	question := []any{s.config.Host, namespace, o.args, o.selector, o.fieldSelector, o.targets.files}
	if s.files != nil {
		question = append(question, o.from, s.files.Header().Begun)
	}
	text, err := json.Marshal(question)
	if err != nil {
		return "", err
	}
	dir, err := state("screens")
	return filepath.Join(dir, fmt.Sprintf("%x.json", sha256.Sum256(text))), err
}

// keepNumbers keeps what the numbers mean that are being shown. Where that fails, a number is refused.
func (o *explainOptions) keepNumbers(s *session, report *explain.Report) {
	file, err := o.numbersFile(s)
	if err != nil || len(report.Causes) == 0 {
		return
	}
	text, err := json.Marshal(numbered{time.Now().UTC(), unstick.NewScreen(report)})
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")) // of a valid pattern
	for _, other := range old {
		if info, err := os.Lstat(other); err == nil && time.Since(info.ModTime()) > 24*numbersLast {
			_ = os.Remove(other)
		}
	}
	beside, err := os.CreateTemp(filepath.Dir(file), "new-*") // for its user alone
	if err != nil {
		return
	}
	_, err = beside.Write(text)
	if err := errors.Join(err, beside.Close()); err != nil || os.Rename(beside.Name(), file) != nil {
		_ = os.Remove(beside.Name())
	}
}

// shown is what was shown last.
func (o *explainOptions) shown(s *session) (shown numbered, err error) {
	file, err := o.numbersFile(s)
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(text, &shown)
		}
	}
	return shown, err
}

// completeCauses completes a flag with the causes that were shown last of the same objects.
func (o *explainOptions) completeCauses(value func(number int, name string) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return o.complete(cmd, func(_ context.Context, s *session) completed {
			o.args = args
			shown, _ := o.shown(s)
			var values []string
			for i, c := range shown.Causes {
				values = append(values, value(i+1, c.Name))
			}
			return completed{matching(values, nil, word), cobra.ShellCompDirectiveKeepOrder}
		})
	}
}

// takeNumbers finds what the numbers of the command line meant when they were shown, in what there is now.
func (o *unstickOptions) takeNumbers(l *look) ([]unstick.Picked, error) {
	shown, err := o.shown(l.session)
	if err != nil {
		return nil, o.lookAgain(l, fmt.Errorf("number %s: no answer about these objects has shown numbers", o.numbers[0]))
	}
	var picked []unstick.Picked
	for i, p := range o.picks {
		name, err := shown.Causes.Meant(p)
		if err != nil {
			return nil, o.lookAgain(l, err)
		}
		if age := time.Since(shown.Time); age > numbersLast || age < -numbersLast {
			return nil, o.lookAgain(l, fmt.Errorf("number %s was shown at %s, as --cause=%s", o.numbers[i], shown.Time.Format(time.RFC3339), name))
		}
		found, err := shown.Causes.Take(l.report, name)
		if err != nil {
			return nil, o.lookAgain(l, fmt.Errorf("number %s was --cause=%s: %w", o.numbers[i], name, err))
		}
		picked = append(picked, found)
	}
	return picked, nil
}

// lookAgain adds to an error the command that shows what can be picked now.
func (o *unstickOptions) lookAgain(l *look, err error) error {
	asked, all := o.asked(l.session)
	if !all {
		return hintedError{err, "look again with " + o.name + " explain-stuck"}
	}
	return hintedError{err, "look again: " + o.name + o.connection() + " explain-stuck" + asked}
}

// asked is what was asked for, as arguments, unless they need more than words to be repeated.
func (o *explainOptions) asked(s *session) (_ string, all bool) {
	var words []string
	for _, file := range o.from {
		words = append(words, "--from", file)
	}
	switch {
	case o.allNamespaces:
		words = append(words, "-A")
	case s.enforced:
		words = append(words, "-n", s.namespace)
	}
	text := strings.TrimSuffix(" "+shell.Command(append(words, o.args...)), " ")
	return text, !o.fromFiles() && o.selector == "" && o.fieldSelector == ""
}
