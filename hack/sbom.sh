#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hack/sbom.sh BINARY DOCUMENT VERSION DATE: writes the software bill of materials
# of a Go binary, in CycloneDX JSON. The date replaces the tool's clock, so that
# the same binary gives the same document.
set -eu
binary=$(realpath "$1") document=$(realpath "$(dirname "$2")")/$(basename "$2")
# The document has the tool's own checksum.
CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' go -C "$(dirname "$0")/tools" tool cyclonedx-gomod bin -json -std -noserial -version "$3" -output "$document" "$binary"
sed -e "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$4\"/" "$document" >"$document.tmp"
mv "$document.tmp" "$document"
