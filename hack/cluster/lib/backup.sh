# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A backup of etcd, and the way back to it, as Kubernetes' documentation has an administrator do it.

# What keeps the cluster's state, or remembers it: these begin anew with the restored one, in the order of their start.
# Kubelet, kube-proxy and containerd run on, and so do all pods.
readonly restarted=(etcd kube-apiserver kube-controller-manager kube-scheduler)

# How far the revision of a restored etcd is above that of its snapshot: further than any cluster gets between a backup
# and its end. Without that, resource versions that clients have seen would come again, for other objects, and who
# watches from one of them would go on without noticing that the past has changed. Together with --mark-compacted every
# old one is answered with "too old", and whoever watches lists anew.
readonly revision_bump=1000000000

# require_backup_file COMMAND ARGUMENT... sets file to the path of the one file that the command is about.
require_backup_file() {
	(($# == 2)) || fail "$1 needs one file behind it, where the snapshot is kept: $1 FILE"
	file="$(realpath -m "$2")"
	require_node
}

cluster_snapshot() {
	local file
	require_backup_file snapshot "$@"
	[[ -d ${file%/*} ]] || fail "there is no folder ${file%/*} for the snapshot"
	build_programs "${backup_programs[@]}"
	# The node's network, and the host's files.
	run_with_heartbeat "taking the snapshot" "$state/log/snapshot.log" nsenter --target "$node" --net -- \
		"$bin/etcdctl" --endpoints=http://127.0.0.1:2379 snapshot save "$file"
	say "the snapshot is in $file: $(snapshot_summary "$file")"
}

# snapshot_summary FILE prints in a few words what a snapshot holds.
snapshot_summary() {
	"$bin/etcdutl" snapshot status "$1" --write-out=json | jq -r '"revision \(.revision), \(.totalKey) keys, \(.totalSize) bytes"'
}

cluster_restore() {
	local file fresh="$state/etcd.restored" each
	require_backup_file restore "$@"
	[[ -r $file ]] || fail "there is no snapshot $file that can be read"
	build_programs "${backup_programs[@]}"
	take_cluster_lock
	say "restoring $file; the cluster runs on until that is done"
	rm -rf "$fresh"
	run_with_heartbeat "restoring the snapshot" "$state/log/restore.log" "$bin/etcdutl" snapshot restore "$file" \
		--data-dir "$fresh" --name node --initial-cluster node=http://127.0.0.1:2380 \
		--initial-advertise-peer-urls http://127.0.0.1:2380 --bump-revision "$revision_bump" --mark-compacted
	say "starting ${restarted[*]} again with it (about 10 s)"
	request_of_node stop "${restarted[@]}"
	rm -rf "$state/etcd/member"
	mv "$fresh/member" "$state/etcd/member"
	rm -rf "$fresh"
	for each in "${restarted[@]}"; do
		request_of_node start "$each"
		[[ $each != kube-apiserver ]] ||
			await_in_cluster "the API server is ready" as_admin --request-timeout=2s get --raw /readyz
	done
	await_in_cluster "the cluster is well" is_well
	say "the cluster \"$cluster\" is where it was at the snapshot"
}

is_well() {
	[[ -z $(trouble) ]]
}

# request_of_node stop|start PART... has node/init stop or start parts, and waits until it has.
request_of_node() {
	local verb="$1" request="$state/parts/request" deadline=$((SECONDS + 30))
	shift
	printf '%s\n' "${@/#/$verb }" >"$request.new"
	mv "$request.new" "$request"
	while [[ -e $request ]]; do
		[[ -n $(node_process) ]] || fail "the node ended while it was to $verb $*; see $state/log/init.log"
		((SECONDS < deadline)) || fail "the node's first process did not $verb $* within 30 s; see $state/log/init.log"
		kill -USR1 "$node" 2>/dev/null || true
		sleep 0.1
	done
}
