// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// maxVersions is the maximum number of objects with one Name that are read. A key that was
// rotated more often has to be cleaned up in the key manager.
const maxVersions = 64

// located are the objects of an id.
type located struct {
	objects []*object
	// material has the bytes of the only object, if it is a symmetric key and the server sent
	// them with the attributes. The owner of located clears them.
	material []byte
}

// versionsOf returns the objects whose Name is an id: its symmetric keys, or if it has none, its
// other objects. If there are none, it returns the object whose Unique Identifier is the id.
//
// known is the object of the last answer, or empty. While a key has one version, a question with
// known costs one message. A question without known also costs one message if the server applies
// the next requests of the message to the object that Locate has found, and two messages
// otherwise. The session assumes the former until a server shows the opposite.
func (s *Session) versionsOf(ctx context.Context, id, known string) (*located, error) {
	symmetric := locateRequest(id, attribute(kmip.AttributeNameObjectType, kmip.ObjectTypeSymmetricKey))
	requests := []kmip.OperationPayload{symmetric, attributesRequest(known)}
	if known == "" && !s.traits.ignoresPlaceholder.Load() {
		requests = append(requests, getRaw(""))
	}
	items, err := s.batch(ctx, id, requests...)
	if err != nil {
		return nil, err
	}
	found, err := s.identifiers(id, &items[0])
	if err != nil {
		return nil, err
	}
	described := map[string]*object{}
	if o, err := s.objectOf(id, &items[1]); err == nil {
		described[o.id] = o // the known object may differ from the objects that were found
	}
	if len(found) == 0 {
		return s.othersOf(ctx, id, described)
	}
	all, only := &located{}, ""
	if len(found) == 1 {
		only = found[0]
	}
	if len(requests) > 2 {
		all.material, _ = s.materialOf(only, &items[2]) // a failed request is repeated on its own
	}
	if only != "" && known == "" && described[only] == nil {
		items, err := s.batch(ctx, id, attributesRequest(only), getRaw(only))
		if err != nil {
			return nil, err
		}
		if o, err := s.objectOf(id, &items[0]); err == nil {
			described[o.id] = o
			s.traits.ignoresPlaceholder.Store(true) // the server describes the object only if a request names it
		}
		all.material, _ = s.materialOf(only, &items[1]) // a failed request is repeated on its own
	}
	all.objects, err = s.describeAll(ctx, id, found, described)
	return all, err
}

// othersOf returns the objects of an id that has no symmetric keys with its Name.
func (s *Session) othersOf(ctx context.Context, id string, described map[string]*object) (*located, error) {
	items, err := s.batch(ctx, id, locateRequest(id), attributesRequest(id))
	if err != nil {
		return nil, err
	}
	found, err := s.identifiers(id, &items[0])
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		objects, err := s.describeAll(ctx, id, found, described)
		return &located{objects: objects}, err
	}
	one, err := s.objectOf(id, &items[1])
	switch {
	case errors.Is(err, keys.ErrNotFound), err == nil && one.id != id:
		return nil, fmt.Errorf("%w: no object at %s has the Name or Unique Identifier %s", keys.ErrNotFound, s.address, id)
	case err != nil:
		return nil, err
	}
	return &located{objects: []*object{one}}, nil
}

// describeAll returns the objects with these identifiers that have an id as their Name. It asks
// only for objects that are not described yet.
func (s *Session) describeAll(ctx context.Context, id string, found []string, described map[string]*object) ([]*object, error) {
	var requests []kmip.OperationPayload
	for _, identifier := range found {
		if described[identifier] == nil {
			requests = append(requests, attributesRequest(identifier))
		}
	}
	if len(requests) > 0 {
		items, err := s.batch(ctx, id, requests...)
		if err != nil {
			return nil, err
		}
		for i := range items {
			o, err := s.objectOf(id, &items[i])
			switch {
			case errors.Is(err, keys.ErrNotFound):
				continue // destroyed since then
			case err != nil:
				return nil, err
			}
			described[o.id] = o
		}
	}
	all := make([]*object, 0, len(found))
	for i, identifier := range found {
		o := described[identifier]
		if o == nil || o.name != id { // a server that does not filter by Name
			continue
		}
		o.position = len(found) - i // servers return the newest first
		all = append(all, o)
	}
	return all, nil
}

// versionNamed returns the version of a key that name names, or nil if that is no AES key with the id as
// its Name.
//
// To open data with a version that is not known yet, it asks for the bytes of the version in the
// same message. The name of a version comes with data that a caller sends, so it may be the
// identifier of any object that the server shows the broker. The bytes of another object are
// cleared. If a server does not take both requests together, it is asked for the bytes in a
// second message.
func (s *Session) versionNamed(ctx context.Context, name keys.Name, before *keys.Key) (*located, error) {
	attributes := attributesRequest(name.Version)
	var items []kmip.ResponseBatchItem
	if name.Opens && before == nil {
		var err error
		items, err = s.together(ctx, name.Version, attributes, getRaw(name.Version))
		switch {
		case errors.Is(err, errTooLarge): // a name from a caller must not make the server seem unavailable
			s.broken = true
			return nil, fmt.Errorf("%w: version %s of %s is larger than any key", keys.ErrNotFound, name.Version, name.ID)
		case err != nil && !errors.Is(err, errUndecoded):
			return nil, err
		}
	}
	if items == nil {
		var err error
		if items, err = s.batch(ctx, name.Version, attributes); err != nil {
			return nil, err
		}
	}
	var material []byte
	if len(items) > 1 {
		material, _ = s.materialOf(name.Version, &items[1]) // a failed request is repeated on its own
	}
	o, err := s.objectOf(name.ID, &items[0])
	switch {
	case err == nil && o.id != name.Version: // servers may take several texts for one identifier
		err = fmt.Errorf("%w: version %s of %s: the server found the object %s", keys.ErrNotFound, name.Version, name.ID, o.id)
	case err == nil && o.isAES() && o.name == name.ID:
		return &located{objects: []*object{o}, material: material}, nil
	}
	clear(material)
	return nil, err
}

// locateRequest asks for the objects with a Name and other attributes.
func locateRequest(name string, others ...kmip.Attribute) *payloads.LocateRequestPayload {
	return &payloads.LocateRequestPayload{MaximumItems: maxVersions + 1, Attribute: append([]kmip.Attribute{nameAttribute(name)}, others...)}
}

// identifiers returns the objects that a request has located.
func (s *Session) identifiers(id string, item *kmip.ResponseBatchItem) ([]string, error) {
	reply, err := replyOf[*payloads.LocateResponsePayload](s, "Locate "+id, item)
	switch {
	case errors.Is(err, keys.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case len(reply.UniqueIdentifier) > maxVersions:
		return nil, fmt.Errorf("%w: more than %d objects have the Name %s, expected fewer: destroy versions that no data needs", keys.ErrUnusable, maxVersions, id)
	}
	if slices.Contains(reply.UniqueIdentifier, "") {
		return nil, fmt.Errorf("%w: Locate %s at %s: found an empty Unique Identifier", keys.ErrUnavailable, id, s.address)
	}
	return reply.UniqueIdentifier, nil
}

// attributesRequest asks for the attributes of an object. Without an identifier, it asks for the
// attributes of the object that was found before in the same message.
func attributesRequest(id string) *payloads.GetAttributesRequestPayload {
	return &payloads.GetAttributesRequestPayload{UniqueIdentifier: id, AttributeName: []kmip.AttributeName{
		kmip.AttributeNameName, kmip.AttributeNameObjectType, kmip.AttributeNameState, kmip.AttributeNameCryptographicAlgorithm,
		kmip.AttributeNameCryptographicLength, kmip.AttributeNameActivationDate, kmip.AttributeNameInitialDate, kmip.AttributeNameLink,
	}}
}

// objectOf returns the object that a reply describes. name is the name of the object that the
// caller asks for.
func (s *Session) objectOf(name string, item *kmip.ResponseBatchItem) (*object, error) {
	reply, err := replyOf[*payloads.GetAttributesResponsePayload](s, "Get Attributes of "+name, item)
	if err != nil {
		return nil, err
	}
	o := &object{id: reply.UniqueIdentifier}
	for _, attribute := range reply.Attribute {
		switch value := attribute.AttributeValue.(type) {
		case kmip.Name:
			if value.NameValue == name {
				o.name = name
			}
		case kmip.ObjectType:
			o.kind = value
		case kmip.State:
			o.state = value
		case kmip.CryptographicAlgorithm:
			o.algorithm = value
		case int32:
			o.bits = int(value)
		case kmip.Link:
			o.links = append(o.links, value)
		case time.Time:
			if attribute.AttributeName == kmip.AttributeNameActivationDate {
				o.activated = value
			} else {
				o.made = value
			}
		}
	}
	return o, nil
}
