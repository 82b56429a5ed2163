// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names in Kubernetes that the webhook, the controllers and the chart agree on.
const (
	// ProfilesConfigMap is the name of the ConfigMap in each namespace that
	// holds the namespace's rendered set of profiles. Only the operator
	// writes it.
	ProfilesConfigMap = "crypto-broker-profiles"

	// FieldManager names the operator in managedFields.
	FieldManager = "crypto-broker-operator"

	// LeaderElectionLease is the name of the Lease in the operator's namespace
	// whose holder runs the reconcilers.
	LeaderElectionLease = "crypto-broker-operator"
)

// Annotations of a namespace's ConfigMap of profiles. They are no keys of it,
// because each key is a file in every pod with a broker.
const (
	// RemovedProfilesAnnotation is a profile file with the profiles that were in
	// the set and are not any more.
	RemovedProfilesAnnotation = "cryptobroker.io/removed-profiles"

	// ProfilesHistoryAnnotation is JSON: how often each name was allowed to become
	// weaker, marks of removed profiles for which there was no room, and whether there
	// was no room for those either.
	ProfilesHistoryAnnotation = "cryptobroker.io/profiles-history"

	// MemorySignatureAnnotation is the signature of the two annotations above together
	// with the set beside them.
	MemorySignatureAnnotation = "cryptobroker.io/profiles-history-signature"

	// OldestProfilesAnnotation is JSON: by the name of a resource definition, when
	// the oldest of its profiles was created that applies to the namespace.
	OldestProfilesAnnotation = "cryptobroker.io/oldest-profiles"
)

// AllowWeakerAnnotation of a CryptoProfile or ClusterCryptoProfile is the digest
// of exactly one change that makes its profile weaker, and allows it. Several are
// separated by commas. Who writes it needs the verb "weaken" on the object.
const AllowWeakerAnnotation = "cryptobroker.io/allow-weaker"

// Labels on ClusterCryptoProfiles.
const (
	// CatalogueLabel with the value CatalogueLabelValue marks those that the
	// operator keeps as its catalogue has them.
	CatalogueLabel      = "cryptobroker.io/catalogue"
	CatalogueLabelValue = "true"
)
