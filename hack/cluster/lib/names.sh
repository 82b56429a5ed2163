# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # the names are for the other files
#
# All names that a cluster uses on this machine follow from the cache folder and the name of the cluster. So a cluster
# can be removed without its state folder, and two checkouts of the repository use different names.

# set_names NAME sets the variables below.
set_names() {
	if [[ ! $1 =~ ^[a-z]([a-z0-9-]{0,28}[a-z0-9])?$ ]]; then
		fail "a cluster's name is 1 to 30 small letters, digits and dashes and starts with a letter, but --name is \"$1\""
	fi
	cluster="$1"
	cache="$(realpath -m "${CRYPTO_BROKER_CACHE:-$repository/.cache}")/cluster"
	bin="$cache/bin"                   # compiled programs
	images="$cache/images"             # image archives that each cluster needs
	build_logs="$cache/log"            # output of the compiler and of apt-get
	states="$cache/state"              # a folder for each cluster
	state="$states/$cluster"           # all files of this cluster
	kubeconfig="$state/kubeconfig"     # kubeconfig of the administrator
	init_record="$state/init"          # process id and start time of the node's first process
	identity="$(printf '%s' "$state" | sha256sum | cut -c1-8)"
	host_link="cb$identity"            # end of the link to the node on the host
	cgroup="cbo-$cluster-$identity"    # in every cgroup hierarchy
	readonly cluster cache bin images build_logs states state kubeconfig init_record identity host_link cgroup
}

# make_cache makes the folders of the cache, which git ignores.
make_cache() {
	mkdir -p "$bin" "$images" "$build_logs" "$states" ||
		fail "can't make the cache folder $cache; set CRYPTO_BROKER_CACHE to a folder that can be written"
	[[ -e $cache/.gitignore ]] || printf '*\n' >"$cache/.gitignore"
}

# take_lock FOLDER locks a folder that all clusters use, until release_lock or until this process ends.
take_lock() {
	exec 8<"$1"
	await_lock 8 "$1"
}

release_lock() {
	exec 8<&-
}

# take_cluster_lock locks the start and the stop of this cluster until this process ends. "down" removes the file of the
# lock. So a process that waited compares its file with the one that the path names now.
take_cluster_lock() {
	while :; do
		exec 7>>"$state.lock"
		await_lock 7 "$state"
		[[ ! /proc/self/fd/7 -ef $state.lock ]] || return 0
	done
}

# await_lock DESCRIPTOR WHAT waits until it has the lock of an open file.
await_lock() {
	if ! flock --nonblock "$1"; then
		say "waiting for another run of this command that works in $2"
		flock "$1"
	fi
}
