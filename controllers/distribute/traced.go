// SPDX-License-Identifier: Apache-2.0

package distribute

import "github.com/crypto-broker/crypto-broker-operator/controllers/changetrace"

// Follow has the brokers of a namespace followed in the traces of the changes that a
// reconciliation has brought into the namespace's set. Brokers that confirmed the set before the
// reconciliation are left out. It is called after [Distributor.SetTarget].
func (d *Distributor) Follow(name string, pass *changetrace.Pass) {
	if pass == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var brokers []changetrace.Broker
	if ns, ok := d.namespaces[name]; ok {
		for _, b := range ns.brokers {
			if b.target.Digest != "" && !b.pod.running.IsZero() && (b.confirmed.IsZero() || b.confirmed.After(pass.Since())) {
				brokers = append(brokers, b.traced())
			}
		}
	}
	pass.Done(brokers)
}

// traced returns what a trace has of the broker.
func (b *broker) traced() changetrace.Broker {
	return changetrace.Broker{
		Pod: b.pod.name, UID: b.pod.uid,
		Written: b.target.Written, Tries: b.tries, Annotated: b.tried, Confirmed: b.confirmed,
	}
}
