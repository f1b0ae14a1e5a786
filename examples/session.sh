#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The terminal session in README.md: a Deployment that cannot be deleted, the answer, the preview of the way out, the way out.
# It runs on the cluster of $KUBECONFIG. "make session" draws what it prints.
set -eu
dir=$(dirname "$0")
export XDG_STATE_HOME=/tmp # for a path that is the same everywhere

show() { printf '\033[32m$\033[0m %s\n' "$*"; }
run() { show "$*"; "$@" || true; }

kubectl apply -f "$dir/payments.yaml" >/dev/null
kubectl -n payments rollout status deployment/api --timeout=60s >/dev/null
kubectl -n payments delete deployment/api --cascade=foreground --wait=false >/dev/null
sleep 75 # for an age that looks like one

run kubectl get -n payments deployment/api
echo
run kubectl gc explain-stuck -n payments deploy/api
echo
run kubectl gc unstick -n payments deploy/api 1 --allow=disruptive --dry-run
echo
digest=$(kubectl gc unstick -n payments deploy/api 1 --allow=disruptive --dry-run -o 'jsonpath={.digest}')
show "kubectl gc unstick -n payments deploy/api 1 --allow=disruptive \\
    --confirm=$digest"
kubectl gc unstick -n payments deploy/api 1 --allow=disruptive --confirm="$digest"
