# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Makes a cgroup for the cluster in each hierarchy of the machine, which has cgroup v1, v2 or both:
#   /cbo-NAME-…           the root of the kubelet, with the pods below it
#   /cbo-NAME-…/node      the processes of the node

# cgroup_mounts prints the type and the mount point of each hierarchy.
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

# enter_cgroups moves the calling process into the cgroups of the node. Its children start there.
enter_cgroups() {
	local type mount
	while read -r type mount; do
		echo "$BASHPID" >"$mount/$cgroup/node/cgroup.procs"
	done < <(cgroup_mounts)
}

# cgroup_processes prints the ids of all processes in the cgroups of the cluster.
cgroup_processes() {
	local type mount
	while read -r type mount; do
		if [[ -d $mount/$cgroup ]]; then
			find "$mount/$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null || true
		fi
	done < <(cgroup_mounts) | sort -nu
}

# remove_cgroups removes the cgroups of the cluster. The kernel allows that a moment after their last process ended.
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
