# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Compiles the cluster's programs from the Go modules that kubernetes/go.mod pins.

# name, package, and how long it takes on two processors with nothing compiled yet
readonly programs=(
	"kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver 4 minutes"
	"etcd go.etcd.io/etcd/server/v3 30 seconds"
	"kubectl k8s.io/kubernetes/cmd/kubectl 1 minute"
	"kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager 1 minute"
	"kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler 15 seconds"
	"kubelet k8s.io/kubernetes/cmd/kubelet 1 minute"
	"kube-proxy k8s.io/kubernetes/cmd/kube-proxy 15 seconds"
)

# kubernetes_version prints the version that go.mod pins, as v1.2.3.
kubernetes_version() {
	awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' "$here/kubernetes/go.mod"
}

build_all() {
	local version fingerprint name package duration log
	make_cache
	version="$(kubernetes_version)"
	[[ $version =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+ ]] || fail "no version of k8s.io/kubernetes in $here/kubernetes/go.mod"
	local flags="-s -w" variables
	for variables in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $variables.gitVersion=$version -X $variables.gitMajor=${BASH_REMATCH[1]}"
		flags+=" -X $variables.gitMinor=${BASH_REMATCH[2]} -X $variables.gitTreeState=clean"
	done
	fingerprint="$({
		cat "$here/kubernetes/go.mod" "$here/kubernetes/go.sum"
		echo "$flags $(go env GOOS GOARCH | paste -sd' ')"
	} | sha256sum | cut -d' ' -f1)"
	take_lock "$bin"
	for line in "${programs[@]}"; do
		read -r name package duration <<<"$line"
		if [[ -x $bin/$name && $(cat "$bin/.$name.built-from" 2>/dev/null) == "$fingerprint" ]]; then
			continue
		fi
		log="$build_logs/$name.log"
		say "building $name${version:+ for Kubernetes $version} (about $duration the first time)"
		run_with_heartbeat "building $name" "$log" env CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly nice \
			go build -C "$here/kubernetes" -p 2 -trimpath -buildvcs=false -ldflags "$flags" -o "$bin/.$name.new" "$package"
		mv "$bin/.$name.new" "$bin/$name"
		printf '%s\n' "$fingerprint" >"$bin/.$name.built-from"
	done
	build_pause
	release_lock
	say "all programs are in $bin"
}

# build_pause makes the image of the pod sandbox. The compiler's own cache makes this quick.
build_pause() {
	run_with_heartbeat "building pause" "$build_logs/pause.log" env CGO_ENABLED=0 \
		go build -C "$repository" -trimpath -buildvcs=false -ldflags "-s -w" -o "$bin/.pause.new" ./hack/cluster/pause
	if ! cmp -s "$bin/.pause.new" "$bin/pause" || [[ ! -e $images/pause.tar ]]; then
		mv "$bin/.pause.new" "$bin/pause"
		make_image "$pause_image" "$bin/pause" "$images/pause.tar" 65535:65535
	fi
	rm -f "$bin/.pause.new"
}
