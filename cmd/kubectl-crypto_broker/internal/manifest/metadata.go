// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// generatedSuffix stands for what the API server appends to generateName.
const generatedSuffix = "xxxxx"

// checkMetadata checks the metadata of an object as the API server does before it looks at the
// schema. It gives the object a name if the API server would.
func (d *definition) checkMetadata(object map[string]any) (problems []string) {
	fields, is := object["metadata"].(map[string]any)
	if !is {
		if object["metadata"] != nil {
			return nil // the schema refuses it
		}
		fields = map[string]any{}
		object["metadata"] = fields
	}
	if generate, _ := fields["generateName"].(string); generate != "" && fields["name"] == nil {
		fields["name"] = generate + generatedSuffix
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return []string{"metadata: " + err.Error()}
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return []string{unreadable("metadata.", err)}
	}
	switch {
	case !d.namespaced:
		meta.Namespace = "" // the API server ignores it
	case meta.Namespace == "":
		meta.Namespace = metav1.NamespaceDefault // whoever applies the manifest says which
	}
	for _, err := range validation.ValidateObjectMeta(&meta, d.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata")) {
		problems = append(problems, sentence(err))
	}
	return problems
}
