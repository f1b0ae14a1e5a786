#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows kubectl gc.
#
#   demo.sh               on the cluster of $KUBECONFIG, in namespaces of its own;
#                         it cleans up
#   demo.sh offline       on shop.snapshot beside it, without a cluster
#   demo.sh snapshot FILE writes that file, on the cluster of $KUBECONFIG
#
# "make demo" runs the second while it compiles a control plane for the first.
set -eu
dir=$(dirname "$0")

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() { printf '\033[36m$ %s\033[0m\n' "$*"; "$@" || echo "[exit code $?]"; }
quiet() { "$@" >/dev/null; }
uid() { kubectl get "$@" -o 'jsonpath={.metadata.uid}'; }

# The objects are made from templates, in which owner UIDs are filled in.
make() {
	sed -e "s/\$WEB/$(uid -n shop deployment/web)/" \
	    -e "s/\$CART/$(uid -n shop cart/basket)/" \
	    -e "s/\$SETTINGS/$(uid -n shop configmap/settings)/" "$dir/$1" | quiet kubectl apply -f -
}

open_shop() {
	quiet kubectl apply -f "$dir/shop.yaml"
	quiet kubectl wait --for=condition=Established crd/carts.shop.example.com --timeout=60s
	quiet kubectl apply -f "$dir/cart.yaml"
	quiet kubectl -n shop rollout status deployment/web --timeout=120s
	quiet kubectl -n shop wait --for=condition=Complete job/migrate --timeout=120s
}

delete_cart() {
	quiet kubectl -n shop delete cart basket --cascade=foreground --wait=false
	# The garbage collector learns of a new type within 30 seconds.
	quiet kubectl -n shop wait --for=jsonpath='{.metadata.deletionTimestamp}' configmap/invoice --timeout=120s
}

close_shop() {
	for object in -n=shop-eu:configmap/prices -n=shop:configmap/lost -n=shop:configmap/invoice -n=shop:cart/basket; do
		kubectl "${object%%:*}" patch "${object#*:}" --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1 || true
	done
	quiet kubectl delete namespace shop shop-eu --timeout=120s
	quiet kubectl delete crd carts.shop.example.com --timeout=60s
}

offline() {
	say "A shop that somebody has put into a file. What owns what in it?"
	run kubectl-gc tree --from "$dir/shop.snapshot"
	say "Why is the cart still there, and what can be done?"
	run kubectl-gc explain-stuck cart/basket --from "$dir/shop.snapshot"
	say "Which owner references are wrong?"
	run kubectl-gc check --from "$dir/shop.snapshot"
	say "What would the deletion of the Deployment take with it?"
	run kubectl-gc delete deployment/web --dry-run --from "$dir/shop.snapshot"
	say "Your own cluster in a file: kubectl gc snapshot -o my.snapshot"
}

case ${1-} in
offline)
	offline
	exit ;;
snapshot)
	open_shop
	make mistakes.yaml
	delete_cart
	quiet kubectl -n shop-eu wait --for=jsonpath='{.metadata.deletionTimestamp}' configmap/prices --timeout=120s
	quiet kubectl -n shop wait --for=jsonpath='{.metadata.deletionTimestamp}' configmap/lost --timeout=120s
	quiet kubectl -n shop wait --for=jsonpath='{.metadata.ownerReferences[0].kind}=Deployment' secret/session --timeout=120s
	kubectl config set-context --current --namespace=shop >/dev/null
	sleep 60 # explain-stuck gives a controller some time before it calls something stuck
	kubectl gc snapshot --second-look --overwrite -o "$2"
	close_shop
	exit ;;
esac

say "A shop: a Deployment and a Job run by the real controllers, custom resources ..."
open_shop
run kubectl gc tree -n shop

say "One object: its owners above, its dependents below"
pod=$(kubectl -n shop get pods -l app=web -o name | head -n 1)
run kubectl gc tree -n shop "$pod" -o wide

say "Now some mistakes. This ConfigMap names an owner in another namespace, so the
# garbage collector deletes it; a finalizer holds it for us to see."
make mistakes.yaml
run kubectl gc tree -n shop-eu configmap/prices
say "With the whole cluster read, the reason is plain:"
run kubectl gc tree -n shop-eu configmap/prices --scope=cluster

say "An owner that never existed, an owner kind that the server does not serve, and
# a custom resource whose deletion waits for a dependent that cannot go:"
delete_cart
run kubectl gc tree -n shop --exclude-types=pods,replicasets.apps,jobs.batch

say "Why is the cart still there, and what can be done?"
run kubectl gc explain-stuck -n shop cart/basket

say "A namespace that is stuck behind the webhook of a policy engine that was uninstalled:"
quiet kubectl apply -f "$dir/payments.yaml"
quiet kubectl -n payments rollout status deployment/api --timeout=120s
quiet kubectl delete namespace payments --wait=false
quiet kubectl wait namespace/payments --for=condition=NamespaceDeletionContentFailure --timeout=60s
run kubectl gc explain-stuck namespace/payments
say "The policy engine is gone for good. What would the first of these ways out change?"
run kubectl gc unstick namespace/payments 1 --dry-run
say "Exactly that, by its digest; without one it would ask:"
backup=$(mktemp -d)
run kubectl gc unstick namespace/payments 1 --backup="$backup" \
	--confirm="$(kubectl gc unstick namespace/payments 1 --dry-run -o 'jsonpath={.digest}')"
say "Not for good after all? It kept what it deleted:"
run kubectl gc unstick --undo "$backup"/* --yes
quiet kubectl delete validatingwebhookconfiguration policy-engine
rm -rf "$backup"

say "Which owner references are wrong, and what does the garbage collector do about them?"
run kubectl gc check -n shop

say "All of it in a file, to look at later or elsewhere, and to compare with"
before=$(mktemp -d)/before.snapshot
run kubectl gc snapshot -o "$before"

say "What would the deletion of the Deployment take with it?"
run kubectl gc delete -n shop deployment/web --dry-run
say "Just that:"
run kubectl gc delete -n shop deployment/web --yes

say "And this is what it has taken, by the file from before:"
run kubectl gc diff -n shop "$before"
rm -f "$before"

say "What is left, as data for a script"
run kubectl gc tree -n shop -o 'jsonpath={range .nodes[*]}{.kind}/{.name}{range .owners[*]}  {.name}={.state} {.reason}{end}{"\n"}{end}'

say "Cleaning up"
close_shop
