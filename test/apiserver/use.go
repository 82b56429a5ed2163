// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Right is a verb that a role allows for a resource. Names are empty for all objects, and so is Namespace for all
// namespaces.
type Right struct {
	Verb, Group, Resource, Namespace string
	Names                            []string
}

func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += " of " + r.Group
	}
	if len(r.Names) > 0 {
		text += " named " + r.Names[0]
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// allows reports whether a request needs no other right.
func (r Right) allows(request Request) bool {
	return r.Verb == request.Verb && r.Group == request.Group && r.Resource == request.Resource &&
		(r.Namespace == "" || r.Namespace == request.Namespace) && (len(r.Names) == 0 || slices.Contains(r.Names, request.Name))
}

// GrantByChart creates the roles and the bindings of files of the chart, such as "rbac/role". It returns the rights of each
// service account as a user of the API server.
func GrantByChart(t testing.TB, admin *rest.Config, files []string, values ...string) map[string][]Right {
	t.Helper()
	bound := map[string][]string{} // the roles of users
	roles := map[string][]Right{}
	for _, file := range files {
		file = "templates/" + file + ".yaml"
		if err := CreateFromChart(t.Context(), admin, file, values...); err != nil {
			t.Fatal(err)
		}
		objects, err := FromChart(t.Context(), admin, file, values...)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			var role rbacv1.ClusterRole // has all the fields of a Role
			var binding rbacv1.ClusterRoleBinding
			if err := errors.Join(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role), runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding)); err != nil {
				t.Fatal(err)
			}
			for _, subject := range binding.Subjects {
				user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
				bound[user] = append(bound[user], binding.RoleRef.Kind+" "+binding.RoleRef.Name)
			}
			key := role.Kind + " " + role.Name
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							roles[key] = append(roles[key], Right{verb, group, resource, role.Namespace, rule.ResourceNames})
						}
					}
				}
			}
		}
	}
	rights := map[string][]Right{}
	for user, names := range bound {
		for _, role := range names {
			if len(roles[role]) == 0 {
				t.Errorf("found no rights in the bound %s", role)
			}
			rights[user] = append(rights[user], roles[role]...)
		}
	}
	return rights
}

// ExpectUse expects that a user has used each of its rights, and has asked for nothing else. unused has the rights that the
// test cannot see in use, with the reason.
func ExpectUse(t testing.TB, log AuditLog, user string, rights []Right, unused map[string]string) {
	t.Helper()
	requests, err := log.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, request := range requests {
		if request.Forbidden {
			t.Errorf("%s has no right to %s %s %s %s/%s", user, request.Verb, request.Resource, request.Group, request.Namespace, request.Name)
		}
		for _, right := range rights {
			// Informers watch what they list. They list by a watch where the API server can do that.
			watch := right
			watch.Verb = "watch"
			if right.allows(request) || right.Verb == "list" && watch.allows(request) {
				used[right.String()] = true
			}
		}
	}
	names := map[string]bool{}
	for _, right := range rights {
		name := right.String()
		names[name] = true
		switch reason := unused[name]; {
		case !used[name] && reason == "":
			t.Errorf("%s does not use the right to %s", user, name)
		case used[name] && reason != "":
			t.Errorf("%s uses the right to %s, which it is said not to (%s)", user, name, reason)
		}
	}
	for name := range unused {
		if !names[name] {
			t.Errorf("the chart gives %s no right to %s", user, name)
		}
	}
	t.Logf("%d requests of %s used %d of %d rights", len(requests), user, len(used), len(names))
}
