// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crypto-broker/crypto-broker-operator/test/environment"
)

// OperatorAccess creates the operator's namespace and returns the access of [environment.OperatorUser], who
// has the rights of config/rbac/role.yaml and no others. Call it once for an API server.
func OperatorAccess(ctx context.Context, admin *rest.Config) (*rest.Config, error) {
	root, err := environment.Repository()
	if err != nil {
		return nil, err
	}
	roles, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, err
	}
	kubernetes, err := client.New(admin, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, err
	}
	if err := kubernetes.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: environment.Namespace}}); err != nil {
		return nil, err
	}
	if err := grant(ctx, kubernetes, roles); err != nil {
		return nil, err
	}
	access := rest.CopyConfig(admin)
	access.Impersonate.UserName = environment.OperatorUser
	return access, nil
}

// grant creates the roles and binds them to the operator.
func grant(ctx context.Context, kubernetes client.Client, roles []byte) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: environment.OperatorUser}}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(roles), 4096)
	for {
		var role rbacv1.ClusterRole // has all the fields of a Role
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}
		meta := metav1.ObjectMeta{Name: role.Name, Namespace: role.Namespace}
		objects := []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects},
		}
		if role.Kind == "Role" {
			objects = []client.Object{
				&rbacv1.Role{ObjectMeta: meta, Rules: role.Rules},
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects},
			}
		}
		for _, object := range objects {
			if err := kubernetes.Create(ctx, object); err != nil {
				return err
			}
		}
	}
}
