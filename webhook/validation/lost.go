// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/controllers/render"
)

// maxWarning is the size in bytes of the longest warning that the API server returns uncut.
const maxWarning = 256

// lost warns of a change that removes something from a profile while pods have brokers that serve
// it. It compares only the two profiles. The command kubectl crypto-broker what-if asks brokers
// who has made such calls. where is the namespace of a CryptoProfile, or empty for a
// ClusterCryptoProfile.
func lost(where, object string, before, after *v1alpha1.ProfileSpec, status *v1alpha1.ProfileStatus) []string {
	pods := podsServed(status)
	if pods == 0 {
		return nil
	}
	name := render.Name(object, before)
	phrases := render.Lost(object, before, after)
	if now := render.Name(object, after); now != name {
		phrases = []string{fmt.Sprintf("its name is then %q", now)}
		if after.Rollout != nil {
			phrases[0] += ", in all pods at once"
		}
	}
	if len(phrases) == 0 {
		return nil
	}
	if where != "" {
		where = " -n " + where
	}
	begin := fmt.Sprintf("%s the profile %q, and calls may break: ", serving(pods), name)
	end := fmt.Sprintf("; kubectl crypto-broker what-if -f FILE%s shows who makes such calls", where)
	return []string{begin + fitting(phrases, maxWarning-len(begin)-len(end)) + end}
}

// fitting joins the first phrases, at least one, that fit into this many bytes, and adds the
// number of the others.
func fitting(phrases []string, room int) string {
	text := phrases[0]
	for i, phrase := range phrases[1:] {
		more := fmt.Sprintf("; and %d more", len(phrases)-1-i)
		if longer := text + "; " + phrase; len(longer)+len(more) <= room {
			text = longer
			continue
		}
		return text + more
	}
	return text
}
