# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Checks what the machine has to have, and installs Debian packages.

# Each item is a file or a program, and the Debian package that has it. The first four are needed to compile runc, which
# has parts in C.
readonly needed=(
	"cc gcc"
	"/usr/include/stdlib.h libc6-dev"
	"/usr/include/seccomp.h libseccomp-dev"
	"pkg-config pkg-config"
	"/usr/lib/cni/ptp containernetworking-plugins"
	"iptables iptables"
	"conntrack conntrack"
	"ip iproute2"
	"openssl openssl"
	"jq jq"
	"/etc/ssl/certs/ca-certificates.crt ca-certificates"
	"nsenter util-linux"
)

require_linux_and_root() {
	[[ $(uname -s) == Linux ]] || fail "the cluster runs on Linux only, and this is $(uname -s); set KUBECONFIG to use a cluster you have"
	((EUID == 0)) || fail "the cluster needs root for its namespaces, mounts and interfaces, and this is user $(id -un); run it as root"
}

# require_machine checks what a script cannot install, and installs the rest.
require_machine() {
	require_linux_and_root
	command -v go >/dev/null || fail "go is not in PATH; install Go 1.26 or newer, the cluster's programs are compiled with it"
	make_cache
	install_packages
}

# missing COLUMN prints in one line what is not there (column 1), or the packages that have it (column 2).
missing() {
	local each
	for each in "${needed[@]}"; do
		if ! command -v "${each% *}" >/dev/null && [[ ! -e ${each% *} ]]; then
			cut -d' ' -f"$1" <<<"$each"
		fi
	done | sort -u | paste -sd' '
}

install_packages() {
	local packages
	packages="$(missing 2)"
	[[ -n $packages ]] || return 0
	command -v apt-get >/dev/null ||
		fail "missing on this machine: $(missing 1); this is no Debian, so install yourself what Debian calls: $packages"
	take_lock "$bin"
	packages="$(missing 2)" # another process may have installed them
	if [[ -z $packages ]]; then
		release_lock
		return
	fi
	say "installing the Debian packages $packages (about 30 s)"
	export DEBIAN_FRONTEND=noninteractive
	run_with_heartbeat "reading the package lists" "$build_logs/apt-get-update.log" apt-get update
	# The list has to be split into words.
	# shellcheck disable=SC2086
	run_with_heartbeat "installing Debian packages" "$build_logs/apt-get-install.log" \
		apt-get install -y --no-install-recommends $packages
	[[ -z $(missing 1) ]] || fail "still missing after $packages were installed: $(missing 1)"
	release_lock
}

# require_overlay checks that the file system of the state folder supports overlay mounts, which containers need.
require_overlay() {
	local try="$state/overlay-test"
	mkdir -p "$try"/{lower,upper,work,merged}
	(cd "$try" && unshare --mount mount -t overlay overlay \
		-o lowerdir=lower,upperdir=upper,workdir=work merged) 2>"$state/log/overlay.log" ||
		fail "the file system of $state can't hold overlay mounts; set CRYPTO_BROKER_CACHE to a folder on ext4, xfs or tmpfs"
	rm -rf --one-file-system "$try"
}

# choose_iptables prints nft or legacy: the first kind of iptables by which this kernel accepts the rules of kube-proxy.
choose_iptables() {
	local kind
	for kind in nft legacy; do
		command -v "xtables-$kind-multi" >/dev/null || continue
		if unshare --net bash -e -s "$kind" >"$state/log/iptables-$kind.log" 2>&1 <<'PROBE'; then
run() { xtables-"$1"-multi iptables -w -t "${@:2}"; }
run "$1" nat -N PROBE
run "$1" nat -A PROBE -m comment --comment probe -m statistic --mode random --probability 0.5 -j MASQUERADE --random-fully
run "$1" nat -A PROBE -p tcp -m tcp --dport 80 -j DNAT --to-destination 192.0.2.1:80
run "$1" nat -A PROBE -m recent --name probe --rcheck --seconds 5 -j MARK --or-mark 0x4000
run "$1" filter -A FORWARD -m conntrack --ctstate INVALID -j DROP
run "$1" filter -A FORWARD -m addrtype --dst-type LOCAL -m mark --mark 0x1/0x1 -j REJECT
PROBE
			printf '%s' "$kind"
			return
		fi
	done
	fail "this kernel takes kube-proxy's rules neither from iptables-nft nor from iptables-legacy; what they said is in $state/log/iptables-*.log"
}
