# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The commands that start, stop and use a cluster.

readonly parts=(etcd kube-apiserver containerd kubelet kube-controller-manager kube-scheduler kube-proxy)

# as_admin ARGUMENT... runs kubectl on the host, as the administrator of the cluster.
as_admin() {
	"$bin/kubectl" --kubeconfig "$kubeconfig" "$@"
}

# trouble prints what is wrong with a cluster whose node runs, a sentence for each problem, or nothing.
trouble() {
	local part reply
	for part in "${parts[@]}"; do
		if [[ -e $state/parts/$part.ended ]]; then
			echo "$part ended with status $(cat "$state/parts/$part.ended"); its log is $state/log/$part.log"
		elif [[ ! -e $state/parts/$part.pid ]]; then
			echo "$part was not started; see $state/log/init.log"
		fi
	done
	if ! reply="$(as_admin --request-timeout=5s get --raw /readyz 2>&1)"; then
		echo "the API server does not answer that it is ready: ${reply##*$'\n'}"
	elif [[ $(as_admin --request-timeout=5s get node "$cluster" \
		-o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>&1) != True ]]; then
		echo "the node is not Ready; the kubelet's log is $state/log/kubelet.log"
	fi
}

cluster_up() {
	local wrong iptables share= dns=yes
	while (($#)); do
		case "$1" in
		--share)
			(($# >= 2)) || fail "--share needs a folder of this machine behind it"
			share="$(require_shared_folder "$2")" || exit
			shift 2
			;;
		--without-dns)
			dns=
			shift
			;;
		*) fail "the command up takes --share DIR and --without-dns, but was given: $*" ;;
		esac
	done
	require_machine
	build_cluster
	[[ -z $dns ]] || build_dns
	say "all programs are in $bin"
	take_cluster_lock
	if [[ -n $(node_process) ]]; then
		wrong="$(trouble)"
		if [[ $(shared_folder) != "$share" ]]; then
			wrong="containers are to share ${share:-no folder}"
		fi
		if [[ -z $wrong ]]; then
			require_node
			[[ -z $dns ]] || add_dns
			say "the cluster \"$cluster\" is running and healthy"
			tell_kubeconfig
			return
		fi
		say "the cluster \"$cluster\" runs but is not well, so it is made anew: ${wrong//$'\n'/; }"
	elif [[ -e $state ]]; then
		say "removing what an earlier run left behind"
	fi
	remove_everything
	mkdir -p "$state/log"
	require_overlay
	# No other cluster may choose a network until the routes of this one exist.
	take_lock "$states"
	choose_network
	say "starting the cluster \"$cluster\": node $node_address, services $service_range, pods $pod_range"
	iptables="$(choose_iptables)"
	make_certificates
	write_configuration "$iptables" "$share"
	mkdir "$state/images"
	cp "$images/pause.tar" "$state/images"
	make_cgroups
	launch_node
	release_lock
	say "waiting for the API server (about 5 s)"
	await_in_cluster "the API server is ready" as_admin --request-timeout=2s get --raw /readyz
	say "the API server is ready; waiting for the node (about 7 s)"
	[[ -z $dns ]] || start_dns
	await_in_cluster "the node exists" as_admin get node "$cluster"
	await_in_cluster "the node is Ready" as_admin wait --for=condition=Ready "node/$cluster" --timeout=5s
	await_in_cluster "the node takes pods" node_takes_pods
	await_in_cluster "the default service account exists" as_admin --namespace default get serviceaccount default
	[[ -z $dns ]] || await_dns
	say "the cluster \"$cluster\" is ready: Kubernetes $(kubernetes_version), iptables-$iptables"
	tell_kubeconfig
}

tell_kubeconfig() {
	say "use it with: export KUBECONFIG=$kubeconfig"
}

node_takes_pods() {
	[[ -z $(as_admin get node "$cluster" -o 'jsonpath={.spec.taints}') ]]
}

# await_in_cluster WHAT CMD... repeats a command until it succeeds. It fails after 120 seconds, and if the node or a part
# of it ends.
await_in_cluster() {
	local what="$1" deadline=$((SECONDS + 120)) next=$((SECONDS + 15)) each
	shift
	until "$@" >>"$state/log/up.log" 2>&1; do
		[[ -n $(node_process) ]] || fail "the node ended while waiting until $what: $(tail -n 3 "$state/log/init.log" | paste -sd';'); all logs are in $state/log"
		for each in "${parts[@]}"; do
			[[ ! -e $state/parts/$each.ended ]] || fail "$each ended while waiting until $what; its log is $state/log/$each.log"
		done
		((SECONDS < deadline)) || fail "waited 120 s in vain until $what; the logs are in $state/log"
		if ((SECONDS >= next)); then
			say "still waiting until $what"
			next=$((SECONDS + 15))
		fi
		sleep 0.2
	done
}

cluster_down() {
	require_linux_and_root
	if [[ -d $states ]]; then
		take_cluster_lock
	fi
	remove_everything
	rm -f "$state.lock"
	say "the cluster \"$cluster\" is gone"
}

# remove_everything removes all of the cluster from the machine, however much of it there is.
remove_everything() {
	end_node
	disconnect_node
	remove_cgroups
	if [[ -e $state ]]; then
		rm -rf --one-file-system "$state" || fail "can't remove all of $state"
	fi
}

cluster_status() {
	local wrong part
	require_linux_and_root
	node="$(node_process)"
	if [[ -z $node ]]; then
		if [[ -e $state ]]; then
			fail "the cluster \"$cluster\" does not run, but an earlier run left its state in $state; \"up\" starts anew, \"down\" removes it"
		fi
		fail "there is no cluster \"$cluster\""
	fi
	wrong="$(trouble)"
	for part in "${parts[@]}"; do
		if [[ -e $state/parts/$part.ended ]]; then
			printf '%-24s ended    %s\n' "$part" "$state/log/$part.log"
		elif [[ -e $state/parts/$part.pid ]]; then
			printf '%-24s running  %s\n' "$part" "$state/log/$part.log"
		else
			printf '%-24s missing  %s\n' "$part" "$state/log/init.log"
		fi
	done
	[[ -z $wrong ]] || fail "the cluster \"$cluster\" is not well: ${wrong//$'\n'/; }"
	printf 'the cluster "%s" is healthy; KUBECONFIG=%s\n' "$cluster" "$kubeconfig"
}

cluster_stop() {
	require_parts stop "$@"
	request_of_node stop "$@"
}

cluster_start() {
	local part
	require_parts start "$@"
	for part in "$@"; do
		[[ ! -e $state/parts/$part.pid || -e $state/parts/$part.ended ]] || fail "$part runs already"
	done
	request_of_node start "$@"
}

# require_parts COMMAND PART... checks that the command has names of parts behind it, and that the node runs.
require_parts() {
	local command="$1" part
	shift
	(($# > 0)) || fail "$command needs parts behind it, some of: ${parts[*]}"
	for part in "$@"; do
		[[ " ${parts[*]} " == *" $part "* ]] || fail "there is no part $part, expected one of: ${parts[*]}"
	done
	require_node
}

cluster_load() {
	local archive named name='^[a-z0-9][a-z0-9./:_-]*='
	(($# > 0)) || fail "load needs at least one image archive (a tar file)"
	require_node
	for archive in "$@"; do
		[[ ! $archive =~ $name ]] || archive=${archive#*=}
		[[ -r $archive ]] || fail "there is no image archive $archive that can be read"
	done
	for archive in "$@"; do
		named=()
		if [[ $archive =~ $name ]]; then
			named=(--base-name "${archive%%=*}")
			archive=${archive#*=}
		fi
		say "loading $archive"
		# containerd prints long warnings about parts of an archive that are optional.
		in_node ctr -n k8s.io images import "${named[@]}" - <"$archive" >>"$state/log/load.log" 2>&1 || {
			tail -n 5 "$state/log/load.log" >&2
			fail "containerd did not take $archive; is it a Docker or OCI image archive (tar)? Its output is in $state/log/load.log"
		}
	done
}

cluster_kubeconfig() {
	require_node
	printf '%s\n' "$kubeconfig"
}

cluster_exec() {
	[[ ${1:-} != -- ]] || shift
	(($# > 0)) || fail "exec needs a command behind --, for example: exec -- ctr -n k8s.io images list"
	require_node
	in_node "$@"
}
