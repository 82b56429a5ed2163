# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Takes a snapshot of etcd and restores it, by the steps that the documentation of Kubernetes gives to administrators.

# The parts that store or cache the state of the cluster. A restore starts them again, in this order. The kubelet,
# kube-proxy, containerd and all pods keep running.
readonly restarted=(etcd kube-apiserver kube-controller-manager kube-scheduler)

# By how much a restore raises etcd's revision above the revision of the snapshot. No cluster writes so often after a
# backup. Without it, etcd would give resource versions that clients know to other objects, and a watch from such a
# version would continue and miss the change. With it and --mark-compacted, etcd answers an old resource version with
# "too old", so clients list again.
readonly revision_bump=1000000000

# require_backup_file COMMAND ARGUMENT... sets file to the absolute path of the only argument.
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
	# etcd listens in the network of the node; the file is on the host.
	run_with_heartbeat "taking the snapshot" "$state/log/snapshot.log" nsenter --target "$node" --net -- \
		"$bin/etcdctl" --endpoints=http://127.0.0.1:2379 snapshot save "$file"
	say "the snapshot is in $file: $(snapshot_summary "$file")"
}

# snapshot_summary FILE prints the revision, the number of keys and the size of a snapshot.
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
