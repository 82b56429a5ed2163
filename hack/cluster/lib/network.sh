# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # the addresses are for the other files
#
# Makes the link between host and node, and the networks of the node. A cluster uses one free private /16:
#   X.Y.0.0/30   host (.1) and node (.2)
#   X.Y.16.0/20  services
#   X.Y.32.0/19  pods

# network_is_free A.B succeeds if no address and no route of the host is in A.B.0.0/16, and no route but a default route
# (or the halves of one) covers it.
network_is_free() {
	local inside around
	inside="$(ip -4 route show table all root "$1.0.0/16")"
	around="$(ip -4 route show table all match "$1.0.0/16" | grep -Ev '^(default|0\.0\.0\.0/1|128\.0\.0\.0/1) ' || true)"
	[[ -z $inside && -z $around ]]
}

choose_network() {
	local second
	for second in {100..199}; do
		if network_is_free "10.$second"; then
			set_network "10.$second"
			return
		fi
	done
	for second in {16..31}; do
		if network_is_free "172.$second"; then
			set_network "172.$second"
			return
		fi
	done
	fail "no free network for the cluster: routes of this machine touch every one of 10.100.0.0/16 to 10.199.0.0/16 and 172.16.0.0/16 to 172.31.0.0/16"
}

# set_network A.B sets the variables below.
set_network() {
	host_address="$1.0.1"
	node_address="$1.0.2"
	service_range="$1.16.0/20"
	kubernetes_service_address="$1.16.1"
	dns_service_address="$1.16.10"
	pod_range="$1.32.0/19"
}

# connect_node PID links the host to the network namespace of a process. The node has no default route, so no packet
# leaves the machine. Packets to services need a route to reach the rules of kube-proxy.
connect_node() {
	local node="$1"
	ip link add "$host_link" type veth peer name eth0 netns "$node"
	ip address add "$host_address/30" dev "$host_link"
	ip link set "$host_link" up
	nsenter --target "$node" --net sh -ec "
		ip link set lo up
		ip address add $node_address/30 dev eth0
		ip link set eth0 up
		ip route add $service_range via $host_address"
	ip route add "$service_range" via "$node_address" dev "$host_link"
	ip route add "$pod_range" via "$node_address" dev "$host_link"
}

# disconnect_node removes the link. The kernel removes its routes.
disconnect_node() {
	if [[ -e /sys/class/net/$host_link ]]; then
		ip link delete "$host_link" 2>/dev/null || [[ ! -e /sys/class/net/$host_link ]] ||
			fail "can't remove the interface $host_link"
	fi
}
