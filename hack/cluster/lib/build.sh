# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Compiles the cluster's programs from the Go modules that kubernetes/go.mod, containerd/go.mod and coredns/go.mod pin.

# name, folder of the module, package, and how long it takes on two processors with nothing compiled yet
readonly programs=(
	"kube-apiserver kubernetes k8s.io/kubernetes/cmd/kube-apiserver 4 minutes"
	"etcd kubernetes go.etcd.io/etcd/server/v3 30 seconds"
	"etcdctl kubernetes go.etcd.io/etcd/etcdctl/v3 10 seconds"
	"etcdutl kubernetes go.etcd.io/etcd/etcdutl/v3 10 seconds"
	"kubectl kubernetes k8s.io/kubernetes/cmd/kubectl 1 minute"
	"kube-controller-manager kubernetes k8s.io/kubernetes/cmd/kube-controller-manager 1 minute"
	"kube-scheduler kubernetes k8s.io/kubernetes/cmd/kube-scheduler 15 seconds"
	"kubelet kubernetes k8s.io/kubernetes/cmd/kubelet 1 minute"
	"kube-proxy kubernetes k8s.io/kubernetes/cmd/kube-proxy 15 seconds"
	"containerd containerd github.com/containerd/containerd/v2/cmd/containerd 1 minute"
	"containerd-shim-runc-v2 containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 10 seconds"
	"ctr containerd github.com/containerd/containerd/v2/cmd/ctr 15 seconds"
	"runc containerd github.com/opencontainers/runc 30 seconds"
	"coredns coredns . 1 minute"
)

# kubernetes_version prints the version that go.mod pins, as v1.2.3.
kubernetes_version() {
	awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' "$here/kubernetes/go.mod"
}

# linker_flags prints what makes the programs say their version.
linker_flags() {
	local version flags="-s -w" package
	version="$(kubernetes_version)"
	[[ $version =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+ ]] || fail "no version of k8s.io/kubernetes in $here/kubernetes/go.mod"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$version -X $package.gitMajor=${BASH_REMATCH[1]}"
		flags+=" -X $package.gitMinor=${BASH_REMATCH[2]} -X $package.gitTreeState=clean"
	done
	printf '%s' "$flags"
}

# fingerprint FOLDER FLAGS prints a digest of all that a program of that module is made from.
fingerprint() {
	{
		cat "$here/$1/go.mod" "$here/$1/go.sum" "$here/$1"/*.go
		echo "$2 $(go env GOOS GOARCH | paste -sd' ')"
	} | sha256sum | cut -d' ' -f1
}

build_all() {
	local line name folder package duration flags
	local -A fingerprints
	make_cache
	take_lock "$bin"
	flags="$(linker_flags)"
	fingerprints[kubernetes]="$(fingerprint kubernetes "$flags")"
	fingerprints[containerd]="$(fingerprint containerd "$flags")"
	fingerprints[coredns]="$(fingerprint coredns "$flags")"
	for line in "${programs[@]}"; do
		read -r name folder package duration <<<"$line"
		if [[ ! -x $bin/$name || $(cat "$bin/.$name.built-from" 2>/dev/null) != "${fingerprints[$folder]}" ]]; then
			say "building $name (about $duration the first time)"
			build "$name" "$here/$folder" "$package" "$flags"
			printf '%s\n' "${fingerprints[$folder]}" >"$bin/.$name.built-from"
		fi
	done
	build_images
	release_lock
	say "all programs are in $bin"
}

# build NAME FOLDER PACKAGE FLAGS compiles a static program.
build() {
	local cgo=0 tags= flags="$4"
	case "$1" in
	containerd) tags=no_devmapper,no_zfs ;; # what the node has no use for
	runc)                                   # it is in part of C, and filters system calls by libseccomp
		cgo=1 tags=seccomp,netgo,osusergo
		flags+=" -linkmode external -extldflags -static"
		;;
	esac
	run_with_heartbeat "building $1" "$build_logs/$1.log" env CGO_ENABLED="$cgo" GOWORK=off GOFLAGS=-mod=readonly nice \
		go build -C "$2" -p 2 -trimpath -buildvcs=false -tags="$tags" -ldflags "$flags" -o "$bin/.$1.new" "$3"
	mv "$bin/.$1.new" "$bin/$1"
}

# build_images makes the archives that a node loads at its start.
build_images() {
	build pause "$repository" ./hack/cluster/pause "-s -w"
	refresh_image "$pause_image" pause 65535:65535
	refresh_image "$dns_image" coredns 65532:65532
}

# refresh_image NAME PROGRAM USER makes the archive of a program, unless there is one of this very program.
refresh_image() {
	local digest
	digest="$1 $(sha256sum <"$bin/$2")"
	if [[ ! -e $images/$2.tar || $(cat "$images/.$2.made-from" 2>/dev/null) != "$digest" ]]; then
		make_image "$1" "$bin/$2" "$images/$2.tar" "$3"
		printf '%s\n' "$digest" >"$images/.$2.made-from"
	fi
}
