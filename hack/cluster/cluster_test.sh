#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves on this machine that the cluster does what README.md says. Takes about two minutes with the programs compiled.
# The clusters it makes have names of their own, so it can run beside others.

set -euo pipefail
export LC_ALL=C

here="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)"
repository="$(cd "$here/../.." && pwd)"
states="$(realpath -m "${CRYPTO_BROKER_CACHE:-$repository/.cache}")/cluster/state"
first="test-$$-a"
second="test-$$-b"
cache="$(mktemp -d)" # what lib/image.sh works in
began=$SECONDS
readonly here repository states first second cache began

# shellcheck source=lib/image.sh
source "$here/lib/image.sh"

on() { "$here/cluster" --name "$@"; }

# by_make TARGET NAME runs a target of the Makefile for a cluster, as people do.
by_make() { make -C "$repository" --no-print-directory "$1" CLUSTER="$2"; }

# it SENTENCE prints the sentence that the next commands prove.
it() { printf -- '--- [%3ss] %s\n' $((SECONDS - began)) "$*"; }

broken() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

clean_up() {
	local status=$?
	trap - EXIT
	on "$first" down || status=1
	on "$second" down || status=1
	rm -rf "$cache"
	exit "$status"
}
trap clean_up EXIT

# eventually SENTENCE CMD... repeats a command until it succeeds, for at most 30 seconds.
eventually() {
	local sentence="$1" deadline=$((SECONDS + 30)) output
	shift
	until output="$("$@" 2>&1)"; do
		((SECONDS < deadline)) || broken "$sentence: $* said: $output"
		sleep 0.1
	done
}

# must_fail_with TEXT CMD... runs a command that has to fail and to say TEXT.
must_fail_with() {
	local text="$1" output
	shift
	if output="$("$@" 2>&1)"; then broken "$* succeeded: $output"; fi
	[[ $output == *"$text"* ]] || broken "$* said \"$output\", expected \"$text\""
}

# host_state prints the state of the machine that no cluster may change. It leaves out interfaces and routes of clusters,
# because other clusters may start and end meanwhile. must_be_gone checks the ones of the tested clusters.
host_state() {
	ip -o link show | awk -F'[ :@]+' '{ print "interface", $2 }' | grep -Ev ' cb[0-9a-f]{8}$'
	ip -4 route show table all | grep -Ev ' dev cb[0-9a-f]{8}' | sed 's/^/route /'
	awk '{ print "mount", $2, $3 }' /proc/self/mounts
	{ iptables-nft-save && iptables-legacy-save; } 2>/dev/null | grep -v '^#' | sed 's/\[[0-9:]*\]//; s/^/iptables /'
	grep -H . /proc/sys/vm/{overcommit_memory,panic_on_oom} /proc/sys/kernel/{panic,panic_on_oops,hostname} \
		/proc/sys/net/ipv4/ip_forward
	local each
	for each in /var/lib/{kubelet,etcd,cni} /var/log/{pods,containers} /opt/containerd /usr/libexec/kubernetes \
		/run/netns /etc/cni/net.d; do
		[[ ! -e $each ]] || echo "folder $each"
	done
}

# remember NAME notes the namespaces, the interface and the networks of a running cluster for must_be_gone.
declare -A namespaces=() links=() networks=()
remember() {
	local init node
	read -r init _ <"$states/$1/init"
	namespaces[$1]="$(readlink "/proc/$init/ns/net" "/proc/$init/ns/mnt" "/proc/$init/ns/pid" | paste -sd' ')"
	node="$(sed -n 's,.*server: https://\(.*\):6443,\1,p' "$states/$1/kubeconfig")"
	links[$1]="$(ip -4 route get "$node" | grep -o 'dev [^ ]*' | cut -d' ' -f2)"
	networks[$1]="${node%.*.*}"
}

# must_be_gone NAME looks for anything left of a remembered cluster.
must_be_gone() {
	local each
	[[ ! -e $states/$1 ]] || broken "the state folder $states/$1 is still there"
	[[ ! -e $states/$1.lock ]] || broken "the lock $states/$1.lock is still there"
	[[ ! -e /sys/class/net/${links[$1]} ]] || broken "the interface ${links[$1]} is still there"
	[[ -z $(ip -4 route show table all root "${networks[$1]}.0.0/16") ]] || broken "there are routes to ${networks[$1]}.0.0/16"
	[[ -z $(find /sys/fs/cgroup -maxdepth 2 -name "cbo-$1-*") ]] || broken "there are cgroups of $1"
	! grep -q "$states/$1" /proc/self/mounts || broken "there are mounts in $states/$1"
	for each in ${namespaces[$1]}; do
		[[ -z $(find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/*' -lname "$each" 2>/dev/null) ]] ||
			broken "there are processes in the namespace $each"
	done
}

make_probe_image() {
	CGO_ENABLED=0 go build -C "$repository" -trimpath -buildvcs=false -o "$cache/probe" ./hack/cluster/probe
	make_image localhost/cluster/probe:1 "$cache/probe" "$cache/probe.tar" 65532:65532
}

# apply_pods makes a pod with a native sidecar, a Service and a webhook behind a Service.
apply_pods() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=refuse \
		-addext "subjectAltName=DNS:refuse.default.svc" -keyout "$cache/tls.key" -out "$cache/tls.crt" 2>/dev/null
	kubectl create secret tls refuse --cert="$cache/tls.crt" --key="$cache/tls.key" >/dev/null
	kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: app
  labels: {app: probe}
spec:
  initContainers:
  - name: sidecar
    image: localhost/cluster/probe:1
    imagePullPolicy: Never
    restartPolicy: Always
    args: [serve, ":8080"]
    startupProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}
  - name: uses-sidecar
    image: localhost/cluster/probe:1
    imagePullPolicy: Never
    args: [get, "http://127.0.0.1:8080/"]
  containers:
  - name: app
    image: localhost/cluster/probe:1
    imagePullPolicy: Never
    args: [serve, ":8081"]
  - name: refuse
    image: localhost/cluster/probe:1
    imagePullPolicy: Never
    args: [refuse, ":8443", /tls/tls.crt, /tls/tls.key]
    volumeMounts: [{name: tls, mountPath: /tls}]
  volumes:
  - name: tls
    secret: {secretName: refuse}
---
apiVersion: v1
kind: Service
metadata: {name: probe}
spec:
  selector: {app: probe}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: refuse}
spec:
  selector: {app: probe}
  ports: [{port: 443, targetPort: 8443}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse}
webhooks:
- name: refuse.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig:
    caBundle: $(base64 -w0 "$cache/tls.crt")
    service: {namespace: default, name: refuse}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  objectSelector: {matchLabels: {refuse: me}}
YAML
}

webhook_refuses() {
	local output
	! output="$(kubectl create --dry-run=server -f - 2>&1 <<<'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"refuse":"me"}}}')" &&
		[[ $output == *"the probe refuses everything"* ]]
}

it "wrong use is refused with a sentence"
must_fail_with "small letters" on "No_Name" up
must_fail_with "there is no command fly" on "$first" fly
must_fail_with "there is no option --fly" "$here/cluster" --fly
must_fail_with "the command up takes" on "$first" up high
must_fail_with "takes no arguments" on "$first" down low
must_fail_with "there is no cluster \"$first\"" on "$first" status
must_fail_with "no running cluster" on "$first" kubeconfig
must_fail_with "at least one image" on "$first" load
must_fail_with "snapshot needs one file" on "$first" snapshot
must_fail_with "needs root" setpriv --reuid=65534 --regid=65534 --clear-groups bash "$here/cluster" --name "$first" up

before="$(host_state)"

it "make cluster-up brings a cluster up"
by_make cluster-up "$first"
remember "$first"
KUBECONFIG="$(on "$first" kubeconfig)"
export KUBECONFIG PATH="${states%/state}/bin:$PATH"
on "$first" status >/dev/null

it "a pod with a native sidecar runs from an image that was loaded"
make_probe_image
loaded="$(on "$first" load "$cache/probe.tar" 2>&1)"
[[ $loaded != *level=* ]] || broken "load printed what containerd logs: $loaded"
apply_pods
kubectl wait --for=condition=Ready pod/app --timeout=60s

it "its logs can be read, and commands run in it"
[[ $(kubectl logs app -c app) == "probe serves on :8081" ]] || broken "kubectl logs said: $(kubectl logs app -c app)"
[[ $(kubectl exec app -c app -- /probe get http://127.0.0.1:8080/) == "probe answers" ]] || broken "kubectl exec failed"

it "the host and pods reach pods by their address and services by theirs"
pod="$(kubectl get pod app -o 'jsonpath={.status.podIP}')"
service="$(kubectl get service probe -o 'jsonpath={.spec.clusterIP}')"
eventually "the host reaches the pod" "$cache/probe" get "http://$pod:8080/"
eventually "the host reaches the service" "$cache/probe" get "http://$service/"
eventually "a pod reaches the service it is behind" kubectl exec app -c app -- /probe get "http://$service/"
eventually "a pod reaches the service by name" kubectl exec app -c app -- /probe get http://probe.default.svc.cluster.local/

it "nothing leaves the machine"
must_fail_with "unreachable" on "$first" exec -- ip route get 198.51.100.1
must_fail_with "unreachable" kubectl exec app -c app -- /probe get http://198.51.100.1/

it "the API server reaches a webhook behind a service"
eventually "the webhook refuses" webhook_refuses

it "parts stop and start again, and pods run on"
tasks="$(on "$first" exec -- ctr -n k8s.io tasks list | sort)"
must_fail_with "there is no part fly" on "$first" stop fly
must_fail_with "kubelet runs already" on "$first" start kubelet
on "$first" stop kubelet kube-apiserver
must_fail_with "kubelet was not started" on "$first" status
on "$first" start kube-apiserver kubelet
eventually "the cluster is healthy again" on "$first" status
[[ $(on "$first" exec -- ctr -n k8s.io tasks list | sort) == "$tasks" ]] || broken "containers have changed since: $tasks"

it "a snapshot that is restored brings back what was there, and pods run on"
kubectl create configmap before >/dev/null
on "$first" snapshot "$cache/etcd.snapshot"
kubectl delete configmap before >/dev/null
kubectl create configmap after >/dev/null
newest="$(kubectl get configmap after -o 'jsonpath={.metadata.resourceVersion}')"
tasks="$(on "$first" exec -- ctr -n k8s.io tasks list | sort)"
must_fail_with "there is no snapshot" on "$first" restore "$cache/nowhere"
must_fail_with "restoring the snapshot ended with status" on "$first" restore "$cache/tls.crt"
on "$first" restore "$cache/etcd.snapshot"
kubectl get configmap before >/dev/null
must_fail_with "NotFound" kubectl get configmap after
[[ $(on "$first" exec -- ctr -n k8s.io tasks list | sort) == "$tasks" ]] || broken "containers have changed since: $tasks"
[[ $(kubectl get --raw "/api/v1/configmaps?watch=1&timeoutSeconds=5&resourceVersion=$newest") == *"too old resource version"* ]] ||
	broken "who watches from before the restoration is not told that the past has changed"

it "up on a healthy cluster does nothing"
record="$(cat "$states/$first/init")"
on "$first" up
[[ $(cat "$states/$first/init") == "$record" ]] || broken "the node was started anew"

it "a second cluster stands beside the first, in another network"
on "$second" up --without-dns
remember "$second"
[[ ${networks[$first]} != "${networks[$second]}" ]] || broken "both use ${networks[$first]}.0.0/16"
on "$first" status >/dev/null
[[ $(on "$second" exec -- kubectl get nodes -o name) == "node/$second" ]] || broken "exec does not see its own cluster"

it "a cluster that was started without DNS gets it from the next up"
must_fail_with "NotFound" on "$second" exec -- kubectl --namespace kube-system get deployment coredns
on "$second" up
on "$second" exec -- kubectl --namespace kube-system wait --for=condition=Available deployment/coredns --timeout=10s

it "status names a part that ended, and up makes the cluster anew"
# shellcheck disable=SC2016 # the shell in the node expands it
on "$second" exec -- bash -c 'kill -KILL "$(cat /run/cluster/state/parts/kube-scheduler.pid)"'
eventually "status sees it" must_fail_with "kube-scheduler ended with status 137" on "$second" status
on "$second" up
remember "$second"

it "a cluster whose state folder was lost is removed completely"
mv "$states/$second" "$states/$second.lost"
on "$second" down
rm -rf "${states:?}/$second.lost"
must_be_gone "$second"

it "up says so when its node is killed on the way"
"$here/cluster" --name "$second" up 2>"$cache/killed.log" &
starter=$!
eventually "the API server is being started" test -e "$states/$second/parts/kube-apiserver.pid"
read -r init _ <"$states/$second/init"
kill -KILL "$init"
if wait "$starter"; then broken "up succeeded although its node was killed"; fi
grep -q "the node ended while waiting" "$cache/killed.log" || broken "up said: $(cat "$cache/killed.log")"
[[ -z $(find /sys/fs/cgroup/*/cbo-"$second"-*/ -name cgroup.procs -exec cat {} +) ]] ||
	broken "processes outlived the node's first"

it "up works over what a killed up left behind"
for moment in etc/kubelet.yaml init parts/kube-apiserver.pid; do
	"$here/cluster" --name "$second" up 2>/dev/null &
	starter=$!
	eventually "up reaches $moment" test -e "$states/$second/$moment"
	kill -KILL "$starter"
	{ wait "$starter" || true; } 2>/dev/null
done
on "$second" up
remember "$second"
on "$second" status

it "make cluster-down leaves nothing behind, and can be repeated"
on "$second" down
by_make cluster-down "$first"
must_be_gone "$first"
must_be_gone "$second"
on "$first" down
after="$(host_state)"
[[ $before == "$after" ]] || broken "the machine has changed: $(diff <(echo "$before") <(echo "$after"))"

it "all is well"
