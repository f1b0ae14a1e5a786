#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The terminal session in README.md: a namespace that cannot be deleted, the answer, the fix. It runs on the
# cluster of $KUBECONFIG. "make session" draws what it prints.
set -eu
dir=$(dirname "$0")

run() { printf '\033[32m$\033[0m %s\n' "$*"; "$@" || true; }

kubectl apply -f "$dir/payments.yaml" >/dev/null
kubectl -n payments rollout status deployment/api --timeout=60s >/dev/null
kubectl delete namespace payments --wait=false >/dev/null
sleep 75 # for an age that looks like one

run kubectl get namespace payments
echo
run kubectl gc explain-stuck ns/payments
echo
printf '# The policy engine was uninstalled last week, so its webhook configuration can go:\n'
run kubectl delete validatingwebhookconfiguration policy-engine
run kubectl wait --for=delete namespace/payments --timeout=60s
