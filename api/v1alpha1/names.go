// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names in Kubernetes that the webhook, the controllers and the chart share.
const (
	// ProfilesConfigMap is the name of the ConfigMap in each namespace that has
	// the profile set of the namespace. Only the operator writes it.
	ProfilesConfigMap = "crypto-broker-profiles"

	// RecordConfigMapPrefix is what the names of the ConfigMaps begin with in which the
	// operator records which set each namespace was given last. A digit follows, 0 to f.
	// They are in the operator's namespace.
	RecordConfigMapPrefix = "crypto-broker-record-"

	// FieldManager is the name of the operator in managedFields.
	FieldManager = "crypto-broker-operator"

	// LeaderElectionLease is the name of the Lease in the operator's namespace
	// whose holder runs the reconcilers.
	LeaderElectionLease = "crypto-broker-operator"
)

// Annotations of a namespace's ConfigMap of profiles. They are not keys of the
// ConfigMap, because each key is a file in every pod with a broker.
const (
	// RemovedProfilesAnnotation is a profile file with the profiles that were in
	// the set and have been removed.
	RemovedProfilesAnnotation = "cryptobroker.io/removed-profiles"

	// ProfilesHistoryAnnotation is JSON. It has how often each name was allowed to
	// become weaker, short marks of removed profiles that did not fit into
	// RemovedProfilesAnnotation, and a Bloom filter with the names of those whose marks
	// did not fit either.
	ProfilesHistoryAnnotation = "cryptobroker.io/profiles-history"

	// MemorySignatureAnnotation is the signature of the two annotations above and
	// of the set in the ConfigMap.
	MemorySignatureAnnotation = "cryptobroker.io/profiles-history-signature"

	// OldestProfilesAnnotation is JSON. It has, for each resource definition, when
	// the oldest profile that applies to the namespace was created.
	OldestProfilesAnnotation = "cryptobroker.io/oldest-profiles"
)

// AllowWeakerAnnotation of a CryptoProfile or ClusterCryptoProfile is the digest of
// one change that makes its profile weaker. It allows exactly this change. Commas
// separate several digests. Anybody who writes it needs the verb "weaken" on the object.
const AllowWeakerAnnotation = "cryptobroker.io/allow-weaker"

// PromoteAnnotation on a profile of either kind ends pauses of its rollout, and
// has it go on after a failure. Its value is the attempt of status.rollout, which
// ends the rollout at once; or the attempt, a slash and the number of the last
// step whose pause is over; or the attempt, a slash and PromoteReturn, which gives
// all pods the old profile again.
const PromoteAnnotation = "cryptobroker.io/promote"

// PromoteReturn ends a PromoteAnnotation by which all pods get the old profile again.
const PromoteReturn = "return"

// Labels on ClusterCryptoProfiles.
const (
	// CatalogueLabel is the label of the profiles of the catalogue, and
	// CatalogueLabelValue its value. The operator undoes other changes of them.
	CatalogueLabel      = "cryptobroker.io/catalogue"
	CatalogueLabelValue = "true"
)
