// SPDX-License-Identifier: Apache-2.0

package caller

// Stats are the numbers of a verifier. Each number about issuers is the sum over all issuers.
type Stats struct {
	// KeyHits counts the tokens whose key was known, and KeyMisses the tokens for which newer keys were requested.
	KeyHits, KeyMisses uint64
	// SignatureHits counts the tokens whose signature was checked before, and SignatureMisses the other tokens.
	SignatureHits, SignatureMisses uint64
	// Fetches counts the successful requests for the keys of an issuer, and FailedFetches the failed ones.
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
