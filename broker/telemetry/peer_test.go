// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// made is a connection with made-up addresses.
type made struct {
	net.Conn
	remote, local string
	closed        bool
}

func (m *made) RemoteAddr() net.Addr { return tcp(m.remote) }
func (m *made) LocalAddr() net.Addr  { return tcp(m.local) }

func (m *made) Close() error {
	m.closed = true
	return nil
}

func tcp(address string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 40000))
}

const (
	pod     = "10.244.1.7"
	podIPv6 = "fd00:244::7"
	linked  = "fe80::7%eth0"
	kubelet = "10.244.1.1"
)

func TestAPeerIsOfTheOwnNetworkWhereNoOtherMachineCanHaveItsAddresses(t *testing.T) {
	for _, test := range []struct {
		remote, local string
		own           bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.45.6.7", "127.0.0.1", true},
		{"::ffff:127.0.0.1", "::ffff:127.0.0.1", true},
		{"::1", "::1", true},
		{pod, pod, true},
		{"::ffff:" + pod, pod, true},
		{"127.0.0.1", pod, true},
		{pod, "127.0.0.1", true},
		{podIPv6, podIPv6, true},
		{linked, "fe80::7", true},
		{kubelet, pod, false},
		{"::ffff:" + kubelet, "::ffff:" + pod, false},
		{"fe80::1%eth0", linked, false},
	} {
		if peer := peerOf(&made{remote: test.remote, local: test.local}); peer.own != test.own {
			t.Errorf("from %s to %s: own is %t, want %t", test.remote, test.local, peer.own, test.own)
		}
	}
}

func TestAConnectionWithoutATCPAddressIsOfNoAddress(t *testing.T) {
	if got := address(&net.UnixAddr{Name: "socket"}); got.IsValid() {
		t.Errorf("the address is %s", got)
	}
}

func TestTheNarrowestLimitThatIsReachedDecidesWhatIsClosed(t *testing.T) {
	// Each line stands for a few equal connections. Connections of a line have been idle longer than connections of later lines.
	type some struct {
		n             int
		remote, local string
		answering     bool
	}
	loopback := func(count int) (all []some) {
		for i := range count {
			all = append(all, some{n: 1, remote: fmt.Sprintf("127.0.1.%d", i), local: "127.0.0.1"})
		}
		return all
	}
	for sentence, test := range map[string]struct {
		open []some
		more some
		// want is the place of a line in open whose first connection is closed.
		want int
		full bool
	}{
		"no limit is reached": {
			open: []some{{n: 15, remote: "10.0.0.9", local: pod}}, more: some{remote: "10.0.0.9", local: pod},
		},
		"the address has all of its own": {
			open: []some{{n: 10, remote: kubelet, local: pod}, {n: 16, remote: "10.0.0.9", local: pod}},
			more: some{remote: "10.0.0.9", local: pod}, want: 1, full: true,
		},
		"the address has all of its own, written in two ways": {
			open: []some{{n: 8, remote: "10.0.0.9", local: pod}, {n: 8, remote: "::ffff:10.0.0.9", local: pod}},
			more: some{remote: "10.0.0.9", local: pod}, want: 0, full: true,
		},
		"a link-local address has all of its own, by two interfaces": {
			open: []some{{n: 8, remote: "fe80::1%eth1", local: linked}, {n: 8, remote: "fe80::1%eth0", local: linked}},
			more: some{remote: "fe80::1%eth0", local: linked}, want: 0, full: true,
		},
		"loopback addresses have all of the own network": {
			open: append([]some{{n: 1, remote: kubelet, local: pod}}, loopback(32)...),
			more: some{remote: "127.0.9.9", local: "127.0.0.1"}, want: 1, full: true,
		},
		"loopback addresses and addresses of the pod have all of the own network": {
			open: []some{{n: 1, remote: kubelet, local: pod}, {n: 16, remote: pod, local: pod}, {n: 15, remote: "127.0.0.1", local: pod}, {n: 1, remote: "::1", local: "::1"}},
			more: some{remote: podIPv6, local: podIPv6}, want: 1, full: true,
		},
		"another machine comes where loopback addresses have all of the own network": {
			open: loopback(32), more: some{remote: kubelet, local: pod},
		},
		"all have all": {
			open: []some{{n: 16, remote: "10.0.0.1", local: pod}, {n: 16, remote: "10.0.0.2", local: pod}, {n: 16, remote: "10.0.0.3", local: pod}, {n: 16, remote: "10.0.0.4", local: pod}},
			more: some{remote: kubelet, local: pod}, want: 0, full: true,
		},
		"the longest quiet is being answered": {
			open: []some{{n: 15, remote: "10.0.0.9", local: pod, answering: true}, {n: 1, remote: "10.0.0.9", local: pod}},
			more: some{remote: "10.0.0.9", local: pod}, want: 1, full: true,
		},
		"all of the address are being answered": {
			open: []some{{n: 1, remote: kubelet, local: pod}, {n: 16, remote: "10.0.0.9", local: pod, answering: true}},
			more: some{remote: "10.0.0.9", local: pod}, want: -1, full: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			open, began := map[net.Conn]connection{}, time.Now()
			lines := map[net.Conn]int{}
			for line, some := range test.open {
				for range some.n {
					conn := &made{remote: some.remote, local: some.local}
					open[conn] = connection{peerOf(conn), began.Add(time.Duration(len(open)) * time.Millisecond), some.answering}
					lines[conn] = line
				}
			}
			got, full := longestQuiet(open, peerOf(&made{remote: test.more.remote, local: test.more.local}))
			if full != test.full {
				t.Fatalf("full is %t, want %t", full, test.full)
			}
			want := test.want
			if !test.full {
				want = -1
			}
			line, chosen := lines[got]
			if !chosen {
				line = -1
			}
			if line != want {
				t.Fatalf("chose line %d, want %d", line, want)
			}
			for conn := range open {
				if chosen && lines[conn] == line && open[conn].since.Before(open[got].since) {
					t.Error("another of the line has been quiet longer")
				}
			}
		})
	}
}

func TestContainersOfThePodDoNotPushOutAnotherMachine(t *testing.T) {
	port := newPort(nil, &http.Server{})
	probe := &made{remote: kubelet, local: pod}
	if !port.admit(probe) {
		t.Fatal("the probe is refused")
	}
	for i := range 5000 {
		remote, local := fmt.Sprintf("127.%d.%d.1", i/200, i%200+1), "127.0.0.1"
		switch i % 4 {
		case 1:
			remote, local = pod, pod
		case 2:
			remote, local = podIPv6, podIPv6
		case 3:
			remote, local = linked, linked
		}
		if !port.admit(&made{remote: remote, local: local}) {
			t.Fatalf("connection %d is refused where others are quiet", i)
		}
	}
	if probe.closed {
		t.Error("the connection of another machine is closed")
	}
	if n := len(port.open); n != maxOwnConnections+1 {
		t.Errorf("%d connections are open, want %d of the pod and one of another machine", n, maxOwnConnections)
	}
}

func TestEachConnectionOfACrowdIsReported(t *testing.T) {
	reported := 0
	port := newPort(func() { reported++ }, &http.Server{})
	for i := range quietConnections + 3 {
		if !port.admit(&made{remote: kubelet, local: pod}) {
			t.Fatalf("connection %d is refused", i)
		}
	}
	if reported != 3 {
		t.Errorf("%d connections are reported, want the 3 after the first %d", reported, quietConnections)
	}
}
