# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A cgroup of the cluster's own in every hierarchy of the machine, for cgroup v1, v2 and both side by side:
#   /cbo-NAME-…           the kubelet's root, pods are below it
#   /cbo-NAME-…/node      the node's own processes

# cgroup_mounts prints type and mount point of every hierarchy.
cgroup_mounts() {
	awk '$3 == "cgroup" || $3 == "cgroup2" { print $3, $2 }' /proc/self/mounts
}

make_cgroups() {
	local type mount
	[[ -n $(cgroup_mounts) ]] || fail "no cgroup hierarchy is mounted on this machine, and containers need one"
	while read -r type mount; do
		mkdir -p "$mount/$cgroup/node" || fail "can't make the cgroup $mount/$cgroup; is $mount writable here?"
		if [[ $type == cgroup2 ]]; then
			delegate_controllers "$mount"
			delegate_controllers "$mount/$cgroup"
		elif [[ -e $mount/cpuset.cpus ]]; then
			local folder
			for folder in "$mount/$cgroup" "$mount/$cgroup/node"; do
				cat "$folder/../cpuset.cpus" >"$folder/cpuset.cpus"
				cat "$folder/../cpuset.mems" >"$folder/cpuset.mems"
			done
		fi
	done < <(cgroup_mounts)
}

# delegate_controllers FOLDER lets the children of a cgroup v2 use its controllers.
delegate_controllers() {
	local controller
	for controller in $(<"$1/cgroup.controllers"); do
		case "$controller" in
		cpu | cpuset | memory | pids | io | hugetlb)
			grep -qw "$controller" "$1/cgroup.subtree_control" && continue
			echo "+$controller" >"$1/cgroup.subtree_control" ||
				fail "can't hand the cgroup controller $controller down from $1; in a container, start that container with the host's cgroup namespace"
			;;
		esac
	done
}

# enter_cgroups moves the calling process, and so what it starts, into the node's cgroups.
enter_cgroups() {
	local type mount
	while read -r type mount; do
		echo "$BASHPID" >"$mount/$cgroup/node/cgroup.procs"
	done < <(cgroup_mounts)
}

# cgroup_processes prints the ids of all processes below the cluster's cgroups.
cgroup_processes() {
	local type mount
	while read -r type mount; do
		if [[ -d $mount/$cgroup ]]; then
			find "$mount/$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null || true
		fi
	done < <(cgroup_mounts) | sort -nu
}

# remove_cgroups removes them once their processes are gone; the kernel lets go of them a moment later than of these.
remove_cgroups() {
	local type mount deadline=$((SECONDS + 20))
	while read -r type mount; do
		while [[ -d $mount/$cgroup ]]; do
			find "$mount/$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null || true
			[[ -d $mount/$cgroup ]] || break
			((SECONDS < deadline)) || fail "can't remove the cgroup $mount/$cgroup: still used by the processes $(cgroup_processes | paste -sd' ')"
			sleep 0.1
		done
	done < <(cgroup_mounts)
}
