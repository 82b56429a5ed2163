# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the machine must offer, and the Debian packages.

readonly packages=(containerd runc containernetworking-plugins iptables iproute2 conntrack openssl ca-certificates
	util-linux)
# One program of each package shows that it is installed; ca-certificates and the CNI plugins are files.
readonly package_programs=(containerd runc iptables ip conntrack openssl nsenter)
readonly package_files=(/usr/lib/cni/ptp /etc/ssl/certs/ca-certificates.crt)

require_linux_and_root() {
	[[ $(uname -s) == Linux ]] || fail "the cluster runs on Linux only, and this is $(uname -s); set KUBECONFIG to use a cluster you have"
	((EUID == 0)) || fail "the cluster needs root for its namespaces, mounts and interfaces, and this is user $(id -un); run it as root"
}

# require_machine checks what can't be installed, then installs the rest.
require_machine() {
	require_linux_and_root
	command -v go >/dev/null || fail "go is not in PATH; install Go 1.26 or newer, the cluster's programs are compiled with it"
	make_cache
	install_packages
}

# missing_packages prints what is not installed.
missing_packages() {
	local each
	for each in "${package_programs[@]}"; do
		command -v "$each" >/dev/null || printf '%s\n' "$each"
	done
	for each in "${package_files[@]}"; do
		[[ -e $each ]] || printf '%s\n' "$each"
	done
}

install_packages() {
	local missing
	missing="$(missing_packages | paste -sd' ')"
	[[ -n $missing ]] || return 0
	command -v apt-get >/dev/null ||
		fail "missing on this machine: $missing; install what your distribution calls ${packages[*]} (the CNI plugins are looked for in /usr/lib/cni)"
	take_lock "$bin"
	say "installing Debian packages, for want of $missing (about 30 s)"
	export DEBIAN_FRONTEND=noninteractive
	run_with_heartbeat "reading the package lists" "$build_logs/apt-get-update.log" apt-get update
	run_with_heartbeat "installing Debian packages" "$build_logs/apt-get-install.log" \
		apt-get install -y --no-install-recommends "${packages[@]}"
	missing="$(missing_packages | paste -sd' ')"
	[[ -z $missing ]] || fail "still missing after the installation of ${packages[*]}: $missing"
	release_lock
}

# require_overlay checks that the state folder can hold the layers of containers.
require_overlay() {
	local try="$state/overlay-test"
	mkdir -p "$try"/{lower,upper,work,merged}
	unshare --mount mount -t overlay overlay \
		-o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" 2>/dev/null ||
		fail "the file system of $state can't hold overlay mounts; set CRYPTO_BROKER_CACHE to a folder on ext4, xfs or tmpfs"
	rm -rf --one-file-system "$try"
}

# choose_iptables prints nft or legacy: the first whose rules of the kinds kube-proxy writes are taken by this kernel.
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
