# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Compiles the cluster's programs from the Go modules that kubernetes/go.mod, containerd/go.mod and coredns/go.mod pin, and
# API servers of other versions of Kubernetes from those that apiserver-VERSION/go.mod pin.

# name, folder of the module, package, and how long it takes on two processors with nothing compiled yet
readonly programs=(
	"kube-apiserver kubernetes k8s.io/kubernetes/cmd/kube-apiserver 4 minutes"
	"etcd kubernetes go.etcd.io/etcd/server/v3 30 seconds"
	"kubectl kubernetes k8s.io/kubernetes/cmd/kubectl 1 minute"
	"kube-controller-manager kubernetes k8s.io/kubernetes/cmd/kube-controller-manager 1 minute"
	"kube-scheduler kubernetes k8s.io/kubernetes/cmd/kube-scheduler 15 seconds"
	"kubelet kubernetes k8s.io/kubernetes/cmd/kubelet 1 minute"
	"kube-proxy kubernetes k8s.io/kubernetes/cmd/kube-proxy 15 seconds"
	"containerd containerd github.com/containerd/containerd/v2/cmd/containerd 1 minute"
	"containerd-shim-runc-v2 containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 10 seconds"
	"ctr containerd github.com/containerd/containerd/v2/cmd/ctr 15 seconds"
	"runc containerd github.com/opencontainers/runc 30 seconds"
)
# The programs that only clusters with DNS need, and the programs that only "snapshot" and "restore" need.
readonly dns_programs=("coredns coredns . 1 minute")
readonly backup_programs=(
	"etcdctl kubernetes go.etcd.io/etcd/etcdctl/v3 10 seconds"
	"etcdutl kubernetes go.etcd.io/etcd/etcdutl/v3 10 seconds"
)

# kubernetes_version [FOLDER] prints the version that the go.mod of a folder pins, as v1.2.3.
kubernetes_version() {
	awk '{ sub(/^require /, "") } $1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' "$here/${1:-kubernetes}/go.mod"
}

# linker_flags [FOLDER] prints the flags of the linker by which the programs report the version of Kubernetes
# that the go.mod of a folder pins.
linker_flags() {
	local folder="${1:-kubernetes}" version flags="-s -w" package
	version="$(kubernetes_version "$folder")"
	[[ $version =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+ ]] || fail "no version of k8s.io/kubernetes in $here/$folder/go.mod"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$version -X $package.gitMajor=${BASH_REMATCH[1]}"
		flags+=" -X $package.gitMinor=${BASH_REMATCH[2]} -X $package.gitTreeState=clean"
	done
	printf '%s' "$flags"
}

# fingerprint FOLDER FLAGS prints a digest of all that a program of that module is made from. How it is optimized does not
# count.
fingerprint() {
	{
		cat "$here/$1/go.mod" "$here/$1/go.sum" "$here/$1"/*.go
		echo "$2 $(go env GOOS GOARCH | paste -sd' ')"
	} | sha256sum | cut -d' ' -f1
}

# build_programs PROGRAM... compiles the programs of a list above that are missing or outdated.
build_programs() {
	local line name folder package duration
	local -A fingerprints flags
	make_cache
	take_lock "$bin"
	for line in "$@"; do
		read -r name folder package duration <<<"$line"
		if [[ ! -v fingerprints[$folder] ]]; then
			case "$folder" in
			apiserver-*) flags[$folder]="$(linker_flags "$folder")" ;;
			*) flags[$folder]="$(linker_flags)" ;;
			esac
			fingerprints[$folder]="$(fingerprint "$folder" "${flags[$folder]}")"
		fi
		if [[ ! -x $bin/$name || $(cat "$bin/.$name.built-from" 2>/dev/null) != "${fingerprints[$folder]}" ]]; then
			say "building $name (about $duration the first time)"
			build "$name" "$here/$folder" "$package" "${flags[$folder]}"
			printf '%s\n' "${fingerprints[$folder]}" >"$bin/.$name.built-from"
		fi
	done
	release_lock
}

# build_cluster compiles the programs that every cluster needs, and build_dns the further programs of a cluster with DNS.
build_cluster() {
	build_programs "${programs[@]}"
	take_lock "$bin"
	build pause "$repository" ./hack/cluster/pause "-s -w"
	refresh_image "$pause_image" pause 65535:65535
	release_lock
}

build_dns() {
	build_programs "${dns_programs[@]}"
	take_lock "$bin"
	refresh_image "$dns_image" coredns 65532:65532
	release_lock
}

# build_apiserver [VERSION] compiles an API server, which is the cluster's own if there is no version, and etcd. It prints
# the folder in which tests find both by their names. VERSION may be "optimized": the cluster's, compiled as releases are.
build_apiserver() {
	if (($# == 0)); then
		build_programs "${programs[@]:0:2}"
		printf '%s\n' "$bin"
		return
	fi
	local folder="apiserver-$1"
	if [[ $1 == optimized ]]; then
		build_programs "kube-apiserver-optimized kubernetes k8s.io/kubernetes/cmd/kube-apiserver 5 minutes" \
			"etcd-optimized kubernetes go.etcd.io/etcd/server/v3 1 minute"
		link_apiserver "$folder" kube-apiserver-optimized etcd-optimized
		return
	fi
	[[ $1 =~ ^[0-9]+\.[0-9]+$ && -e $here/$folder/go.mod ]] ||
		fail "there is no API server of Kubernetes \"$1\", expected one of: $(apiserver_versions) optimized"
	build_programs "kube-$folder $folder k8s.io/kubernetes/cmd/kube-apiserver 4 minutes" "${programs[1]}"
	link_apiserver "$folder" "kube-$folder" etcd
}

# link_apiserver FOLDER APISERVER ETCD lets tests find two programs by their names in a folder of the cache, and prints it.
link_apiserver() {
	mkdir -p "$cache/$1"
	ln -sfn "$bin/$2" "$cache/$1/kube-apiserver"
	ln -sfn "$bin/$3" "$cache/$1/etcd"
	printf '%s\n' "$cache/$1"
}

# apiserver_versions prints the versions that build_apiserver takes, in one line.
apiserver_versions() {
	local each
	for each in "$here"/apiserver-*; do printf '%s\n' "${each##*/apiserver-}"; done | paste -sd' '
}

# build NAME FOLDER PACKAGE FLAGS compiles a static program.
build() {
	local cgo=0 tags= flags="$4" inlining=-l
	case "$1" in
	containerd) tags=no_devmapper,no_zfs ;; # what the node has no use for
	*-optimized) inlining= ;;
	kube-apiserver-1.30) tags=providerless ;; # without the clients of clouds, which are half of it
	runc)                                   # it is in part of C, and filters system calls by libseccomp
		cgo=1 tags=seccomp,netgo,osusergo
		flags+=" -linkmode external -extldflags -static"
		;;
	esac
	# People wait for the first build, so it saves processor time: no debug information, no inlining except in the
	# standard library unless the program is to be measured, and a compiler that collects garbage only if it has 2 GiB. That
	# is a third of the time.
	run_with_heartbeat "building $1" "$build_logs/$1.log" env CGO_ENABLED="$cgo" GOWORK=off GOFLAGS=-mod=readonly \
		GOGC=off GOMEMLIMIT=2GiB nice go build -C "$2" -p 2 -trimpath -buildvcs=false -tags="$tags" \
		-gcflags="all=-dwarf=false $inlining" -gcflags=std=-dwarf=false -ldflags "$flags" -o "$bin/.$1.new" "$3"
	mv "$bin/.$1.new" "$bin/$1"
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
