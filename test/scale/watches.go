// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crypto-broker/crypto-broker-operator/api/v1alpha1"
	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile/signed"
)

// watch passes changed sets and annotations to the nodes until ctx ends, as a watch does for kubelets.
func (n *nodes) watch(ctx context.Context, config *rest.Config, clients *kubernetes.Clientset) error {
	named := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", v1alpha1.ProfilesConfigMap).String()
	}
	sets := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTweakListOptions(named)).Core().V1().ConfigMaps().Informer()
	_, err := sets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.sawSet(object) },
		UpdateFunc: func(_, object any) { n.sawSet(object) },
	})
	if err != nil {
		return err
	}

	metadatas, err := metadata.NewForConfig(metadata.ConfigFor(config))
	if err != nil {
		return err
	}
	pods := metadatainformer.NewFilteredMetadataInformer(metadatas, corev1.SchemeGroupVersion.WithResource("pods"), metav1.NamespaceAll, 0, nil, nil).Informer()
	if err := pods.SetTransform(onlyAnnotation); err != nil {
		return err
	}
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object any) {
			pod := object.(*metav1.PartialObjectMetadata)
			if value := pod.Annotations[contract.ProfilesDigestAnnotation]; value != "" {
				n.annotated(pod.Namespace, pod.Name, value)
			}
		},
	})
	if err != nil {
		return err
	}
	for _, informer := range []cache.SharedIndexInformer{sets, pods} {
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), sets.HasSynced, pods.HasSynced) {
		return errors.Join(errors.New("the watches of the nodes did not start"), ctx.Err())
	}
	return nil
}

// onlyAnnotation drops all fields of a pod except its name and the annotation that wakes kubelets.
func onlyAnnotation(object any) (any, error) {
	pod, is := object.(*metav1.PartialObjectMetadata)
	if !is {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: pod.TypeMeta}
	kept.Namespace, kept.Name, kept.UID, kept.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	if value := pod.Annotations[contract.ProfilesDigestAnnotation]; value != "" {
		kept.Annotations = map[string]string{contract.ProfilesDigestAnnotation: value}
	}
	return kept, nil
}

func (n *nodes) sawSet(object any) {
	found := object.(*corev1.ConfigMap)
	if _, is := found.Data[signed.FileName]; !is {
		return // this ConfigMap is the operator's record of the sets of namespaces
	}
	statement, _, err := signed.Read([]byte(found.Data[signed.FileName]))
	if err != nil {
		panic(fmt.Errorf("the signature in %s/%s: %w", found.Namespace, found.Name, err)) // the operator wrote it
	}
	n.changed(found.Namespace, set{statement.Digest, statement.Revision})
}
