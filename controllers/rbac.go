// SPDX-License-Identifier: Apache-2.0

package controllers

// The rights of the reconcilers. config/rbac/role.yaml is made from these lines.
//
// ConfigMaps are read, written and deleted only under one name. Authorization does not know the
// name of an object that is being created, so the right to create has no name, and an admission
// policy of the chart narrows it. Pods are written only through their status subresource, which
// drops every change of a spec.
//
// +kubebuilder:rbac:groups=cryptobroker.io,resources=cryptoprofiles;clustercryptoprofiles,verbs=list;watch
// +kubebuilder:rbac:groups=cryptobroker.io,resources=cryptoprofiles/status;clustercryptoprofiles/status,verbs=patch
// +kubebuilder:rbac:groups=cryptobroker.io,resources=keyproviders;clusterkeyproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=cryptobroker.io,resources=keyproviders/status;clusterkeyproviders/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=crypto-broker-profiles,verbs=get;list;watch;update;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=cryptoprofiles.cryptobroker.io;clustercryptoprofiles.cryptobroker.io,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//
// The record of the sets that namespaces have got, in the operator's namespace.
//
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=configmaps,resourceNames=crypto-broker-record-0;crypto-broker-record-1;crypto-broker-record-2;crypto-broker-record-3;crypto-broker-record-4;crypto-broker-record-5;crypto-broker-record-6;crypto-broker-record-7;crypto-broker-record-8;crypto-broker-record-9;crypto-broker-record-a;crypto-broker-record-b;crypto-broker-record-c;crypto-broker-record-d;crypto-broker-record-e;crypto-broker-record-f,verbs=get;update
//
// Policies and peers of the key access service, in the operator's namespace.
//
// +kubebuilder:rbac:groups=cryptobroker.io,namespace=crypto-broker-system,resources=keyaccesspolicies;keyaccesspeers,verbs=list;watch
// +kubebuilder:rbac:groups=cryptobroker.io,namespace=crypto-broker-system,resources=keyaccesspolicies/status;keyaccesspeers/status,verbs=patch
//
// Leader election, in the operator's namespace.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=crypto-broker-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=crypto-broker-system,resources=leases,resourceNames=crypto-broker-operator,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=crypto-broker-system,resources=events,verbs=create;patch
