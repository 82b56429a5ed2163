# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Starts, finds and ends the first process of the node, from the host.

# node_process prints the process id, on the host, of the first process of the running node, or nothing. A later process
# with the same id has another start time. If the process is a zombie, the node has ended.
node_process() {
	local pid started
	local -a now
	[[ -r $init_record ]] && read -r pid started <"$init_record" || return 0
	read -r -a now 2>/dev/null <"/proc/$pid/stat" || return 0
	if [[ ${now[21]} == "$started" && ${now[2]} != Z ]]; then
		printf '%s' "$pid"
	fi
}

# require_node sets node to the process id of the running node, and fails without one.
require_node() {
	require_linux_and_root
	node="$(node_process)"
	[[ -n $node ]] || fail "there is no running cluster \"$cluster\"; start it with: hack/cluster/cluster --name $cluster up"
}

# launch_node starts node/init in new namespaces and connects it to the host. node/init waits for that. If this process
# ends before, node/init ends, too.
launch_node() {
	local gate="$state/gate" deadline=$((SECONDS + 30))
	mkfifo "$gate"
	exec 9<>"$gate"
	(
		exec </dev/null 7<&- 8<&-
		enter_cgroups
		cd /
		exec setsid unshare --fork --pid --mount --net --ipc --uts -- "$here/node/init" "$state" "$bin" \
			<"$gate" 9<&- >"$state/log/init.log" 2>&1
	) &
	until [[ -e $init_record ]]; do
		kill -0 $! 2>/dev/null || fail "the node's namespaces can't be made: $(cat "$state/log/init.log")"
		((SECONDS < deadline)) || fail "the node's first process did not start within 30 s; see $state/log/init.log"
		sleep 0.05
	done
	node="$(node_process)"
	[[ -n $node ]] || fail "the node's first process ended at once; see $state/log/init.log"
	connect_node "$node"
	echo go >&9
	exec 9>&-
	rm "$gate"
}

# end_node kills the first process of the node, and waits until no process of the cluster is left. The kernel then ends
# all processes of the node. Other processes in the cgroups of the cluster belong to a node whose record was lost.
end_node() {
	local pid deadline=$((SECONDS + 30))
	pid="$(node_process)"
	if [[ -n $pid ]]; then
		kill -KILL "$pid" 2>/dev/null || true
	fi
	while :; do
		local left
		left="$(cgroup_processes)"
		[[ -n $(node_process) || -n $left ]] || return 0
		for pid in $left; do
			kill -KILL "$pid" 2>/dev/null || true
		done
		((SECONDS < deadline)) || fail "these processes of the cluster don't end although they were killed: $(paste -sd' ' <<<"$left")"
		sleep 0.1
	done
}

# in_node CMD... runs a command in the namespaces of the node.
in_node() {
	nsenter --target "$node" --mount --uts --ipc --net --pid -- env KUBECONFIG=/run/cluster/state/kubeconfig \
		PATH="/run/cluster/state/programs:/run/cluster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
}

# request_of_node stop|start PART... asks node/init to stop or start parts, and waits until that is done.
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
