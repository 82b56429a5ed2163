// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crypto-broker/crypto-broker-operator/api/grpc/opentdf/kas"
)

// Limits are the limits of one request.
type Limits struct {
	// Objects is the largest number of data keys.
	Objects int
	// Policy is the size of the largest policy in bytes, in base64.
	Policy int
}

// Body is the content of a client's request.
type Body struct {
	// ClientKey is the client's public key in PEM.
	ClientKey string
	Policies  []*kas.UnsignedRewrapRequest_WithPolicyRequest
	// First reports whether the request is of the first version of the protocol: it has one data key,
	// and a failure is the failure of the call.
	First bool
}

// Names that a request of the first version does not have.
const (
	firstPolicy = "policy-1"
	firstObject = "kao-0"
)

// elementsPerObject is the maximum number of values that a request may have for each data key
// that it may have. Clients send less than 30.
const elementsPerObject = 100

// Parse reads the claim requestBody. The text of an error says what is wrong, and is for the
// client.
func Parse(text []byte, limits Limits) (Body, error) {
	// A request of the largest size could otherwise take fifty times its size in memory.
	if found, most := elements(text), elementsPerObject*(limits.Objects+1); found > most {
		return Body{}, fmt.Errorf("found a requestBody of %d values, expected at most %d", found, most)
	}
	message, err := decode(text)
	if err != nil {
		return Body{}, err
	}
	body := Body{ClientKey: message.GetClientPublicKey(), Policies: message.GetRequests()}
	if len(body.Policies) == 0 {
		if message.GetKeyAccess() == nil {
			return Body{}, errors.New("found neither requests nor keyAccess in the request")
		}
		body.First = true
		body.Policies = []*kas.UnsignedRewrapRequest_WithPolicyRequest{{
			Policy:           &kas.UnsignedRewrapRequest_WithPolicy{Id: firstPolicy, Body: message.GetPolicy()},
			KeyAccessObjects: []*kas.UnsignedRewrapRequest_WithKeyAccessObject{{KeyAccessObjectId: firstObject, KeyAccessObject: message.GetKeyAccess()}},
		}}
	}
	return body, body.check(limits)
}

func (b Body) check(limits Limits) error {
	if len(b.Policies) > limits.Objects {
		return fmt.Errorf("found %d policies, expected at most %d", len(b.Policies), limits.Objects)
	}
	objects := 0
	for _, policy := range b.Policies {
		objects += len(policy.GetKeyAccessObjects())
		if size := len(policy.GetPolicy().GetBody()); size > limits.Policy {
			return fmt.Errorf("found a policy of %d bytes in base64, expected at most %d", size, limits.Policy)
		}
	}
	if objects == 0 || objects > limits.Objects {
		return fmt.Errorf("found %d key access objects, expected 1 to %d", objects, limits.Objects)
	}
	return nil
}

// elements returns how many values a JSON text has at most, without reading it as JSON: each value but the first is behind a
// bracket, a brace or a comma.
func elements(text []byte) int {
	count, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == '{' || c == '[' || c == ','):
			count++
		}
	}
	return count
}

// decode reads the JSON. Some clients write a policy binding as an object, as the message has it,
// and some as a text, as old manifests have it.
func decode(text []byte) (*kas.UnsignedRewrapRequest, error) {
	message := &kas.UnsignedRewrapRequest{}
	options := protojson.UnmarshalOptions{DiscardUnknown: true}
	if err := options.Unmarshal(text, message); err == nil {
		return message, nil
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, errors.New("found a requestBody that is no JSON")
	}
	bindingsAsObjects(document)
	again, err := json.Marshal(document)
	if err == nil {
		message.Reset()
		err = options.Unmarshal(again, message)
	}
	if err != nil {
		return nil, errors.New("found a requestBody that is no UnsignedRewrapRequest: a field has another type")
	}
	return message, nil
}

// bindingsAsObjects replaces policy bindings that are texts.
func bindingsAsObjects(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			bindingsAsObjects(element)
		}
	case map[string]any:
		for name, member := range value {
			if hash, ok := member.(string); ok && (name == "policyBinding" || name == "policy_binding") {
				value[name] = map[string]any{"hash": hash}
				continue
			}
			bindingsAsObjects(member)
		}
	}
}
