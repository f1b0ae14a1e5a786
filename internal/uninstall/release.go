// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// ReleaseType is the type of the Secrets in which Helm keeps releases (helm.sh/helm/v3/pkg/storage/driver/secrets.go).
const ReleaseType = "helm.sh/release.v1"

// maxRelease bounds what a record is unpacked to: a Secret has a megabyte.
const maxRelease = 64 << 20

// record is what is needed of the record of a release. Neither its values nor its templates are decoded.
type record struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	Manifest    string `json:"manifest"`
	ApplyMethod string `json:"apply_method"` // Helm 4 alone has it
	Info        struct {
		Status string `json:"status"`
	} `json:"info"`
	Hooks []struct {
		Manifest string   `json:"manifest"`
		Events   []string `json:"events"`
	} `json:"hooks"`
	Chart struct {
		Files []struct {
			Name string `json:"name"`
			Data []byte `json:"data"`
		} `json:"files"`
	} `json:"chart"`
}

// DecodeRelease reads the record of a release: base64 of JSON, mostly compressed (helm.sh/helm/v3/pkg/storage/driver/util.go,
// decodeRelease). The error shows nothing of the record.
func DecodeRelease(data []byte) (*Release, error) {
	var rec record
	if err := unpack(data, &rec); err != nil {
		return nil, err
	}
	items, err := ReadManifest([]byte(rec.Manifest))
	if err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	r := NewRelease(rec.Namespace, rec.Name, items)
	for _, hook := range rec.Hooks {
		items, err := ReadManifest([]byte(hook.Manifest))
		if err != nil {
			return nil, fmt.Errorf("a hook: %w", err)
		}
		for _, item := range items {
			r.Hooks = append(r.Hooks, HelmHook{Item: item, Events: hook.Events})
		}
	}
	for _, file := range rec.Chart.Files {
		manifest := slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(file.Name)))
		if !manifest || !strings.HasPrefix(file.Name, "crds/") { // pkg/chart/chart.go, CRDObjects
			continue
		}
		items, err := ReadManifest(file.Data)
		if err != nil {
			return nil, errInChart(file.Name, err)
		}
		r.CRDs = append(r.CRDs, items...)
	}
	if rec.ApplyMethod != "" {
		r.Version = Helm4
	}
	r.Uninstalled = rec.Info.Status == "uninstalled"
	return r, nil
}

func unpack(data []byte, into *record) error {
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err != nil {
		return errNoRecord
	}
	var in io.Reader = bytes.NewReader(text)
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b, 0x08}) {
		if in, err = gzip.NewReader(in); err != nil {
			return errNoRecord
		}
	}
	if json.NewDecoder(io.LimitReader(in, maxRelease)).Decode(into) != nil {
		return errNoRecord
	}
	return nil
}
