// SPDX-License-Identifier: Apache-2.0

package caller

// Stats are numbers of a verifier. Those of its issuers are sums.
type Stats struct {
	// KeyHits are the uses of an issuer's keys that were there, and KeyMisses those for which a newer key was looked for.
	KeyHits, KeyMisses uint64
	// SignatureHits are the tokens whose signature was checked before, and SignatureMisses the others.
	SignatureHits, SignatureMisses uint64
	// Fetches are the times that the keys of an issuer arrived, and FailedFetches those that they did not.
	Fetches, FailedFetches uint64
	// Proofs is the number of proofs that are remembered, and ProofLimit is the maximum number.
	Proofs, ProofLimit int
}

// Stats returns the numbers of the verifier.
func (v *Verifier) Stats() Stats {
	sum := Stats{Proofs: v.replays.size(), ProofLimit: v.config.Replays, SignatureHits: v.signatures.hits.Load(), SignatureMisses: v.signatures.misses.Load()}
	for _, i := range v.issuers {
		sum.KeyHits += i.hits.Load()
		sum.KeyMisses += i.misses.Load()
		sum.Fetches += i.fetches.Load()
		sum.FailedFetches += i.failures.Load()
	}
	return sum
}
