// SPDX-License-Identifier: Apache-2.0

package kmip

import (
	"bytes"
	"context"
	"crypto"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovh/kmip-go"
	"github.com/ovh/kmip-go/payloads"
	"github.com/ovh/kmip-go/ttlv"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
)

// oasisCase is one of the test cases of OASIS for KMIP: messages of a client and a server in turn.
type oasisCase struct {
	requests []kmip.RequestMessage
	replies  []kmip.ResponseMessage
}

// UnmarshalXML implements xml.Unmarshaler.
func (c *oasisCase) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	decoder, err := ttlv.NewXMLFromDecoder(d)
	if err != nil {
		return err
	}
	for decoder.Tag() == kmip.TagRequestMessage {
		var request kmip.RequestMessage
		var reply kmip.ResponseMessage
		if err := errors.Join(decoder.TagAny(kmip.TagRequestMessage, &request), decoder.TagAny(kmip.TagResponseMessage, &reply)); err != nil {
			return err
		}
		c.requests, c.replies = append(c.requests, request), append(c.replies, reply)
	}
	return nil
}

// notForUs are cases with messages that kmip-go cannot decode and that the broker never sends:
// Put and Notify, split keys, Certify, Derive Key.
var notForUs = regexp.MustCompile(`^TC[-_](134|NP|SJ|DERIVEKEY)[-_]`)

// oasisCases returns the cases that come with kmip-go, by version and name.
var oasisCases = sync.OnceValues(func() (map[string]*oasisCase, error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ovh/kmip-go").Output()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "kmiptest", "testdata", "v1.*", "*.xml"))
	if err != nil {
		return nil, err
	}
	now := regexp.MustCompile(`"\$NOW[-+0-9]*"`)
	variable := regexp.MustCompile(`"\$[A-Za-z0-9_]+"`)
	all := map[string]*oasisCase{}
	for _, file := range files {
		if notForUs.MatchString(filepath.Base(file)) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		data = now.ReplaceAll(data, []byte(`"`+time.Now().Format(time.RFC3339)+`"`))
		data = variable.ReplaceAll(data, []byte(`"DEADBEEFCAFE"`))
		c := &oasisCase{}
		if err := xml.Unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)] = c
	}
	return all, nil
})

func TestTheReplyOfEachOASISTestCaseIsUnderstood(t *testing.T) {
	t.Parallel()
	understood := map[string]int{}
	all, err := oasisCases()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range all {
		for _, reply := range c.replies {
			for i := range reply.BatchItem {
				item := &reply.BatchItem[i]
				if checkReply(t, name, reply.Header.ProtocolVersion, item) {
					understood[ttlv.EnumStr(item.Operation)]++
				}
			}
		}
	}
	t.Logf("%d cases, replies by operation: %v", len(all), understood)
	if len(all) < 380 {
		t.Errorf("found %d cases, want at least 380", len(all))
	}
	for _, operation := range []string{"Locate", "Get", "GetAttributes", "Create", "CreateKeyPair", "Activate", "Revoke", "Destroy", "DiscoverVersions", "Query", "Sign"} {
		if understood[operation] == 0 {
			t.Errorf("no reply to %s was checked; those that were: %v", operation, slices.Sorted(maps.Keys(understood)))
		}
	}
}

// answering returns a session whose server answers every request with one item.
func answering(t *testing.T, version kmip.ProtocolVersion, item *kmip.ResponseBatchItem) *Session {
	reply := kmip.ResponseMessage{Header: kmip.ResponseHeader{ProtocolVersion: version, TimeStamp: time.Now(), BatchCount: 1}, BatchItem: []kmip.ResponseBatchItem{*item}}
	s := (&memory{change: func([]byte) []byte { return ttlv.MarshalTTLV(&reply) }}).session(t)
	s.version = version
	return s
}

// checkReply passes a reply to the function of a session that makes such requests. It reports whether there is such a function.
func checkReply(t *testing.T, name string, version kmip.ProtocolVersion, item *kmip.ResponseBatchItem) bool {
	t.Helper()
	s := answering(t, version, item)
	if item.ResultStatus != kmip.ResultStatusSuccess {
		_, err := s.Get(t.Context(), "id")
		if !errors.Is(err, keys.ErrNotFound) && !errors.Is(err, keys.ErrDenied) && !errors.Is(err, keys.ErrUnusable) {
			t.Errorf("%s: %s refused with %s: got %v, want an error that no repetition mends", name, ttlv.EnumStr(item.Operation), ttlv.EnumStr(item.ResultReason), err)
		}
		return true
	}
	check, known := checks[item.Operation]
	if !known || item.ResponsePayload == nil {
		return false
	}
	if err := check(t.Context(), s, item.ResponsePayload); err != nil {
		t.Errorf("%s: %s: %v", name, ttlv.EnumStr(item.Operation), err)
	}
	return true
}

var errOther = errors.New("the session found something else than the reply has")

func same(is bool) error {
	if !is {
		return errOther
	}
	return nil
}

// checks call the function of a session for an operation, and compare what it returns with the reply.
var checks = map[kmip.Operation]func(context.Context, *Session, kmip.OperationPayload) error{
	kmip.OperationGet: checkGet,
	kmip.OperationLocate: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		items, err := s.batch(ctx, "id", locateRequest("id"))
		if err != nil {
			return err
		}
		found, err := s.identifiers("id", &items[0])
		return errors.Join(err, same(slices.Equal(found, reply.(*payloads.LocateResponsePayload).UniqueIdentifier)))
	},
	kmip.OperationGetAttributes: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		attributes := reply.(*payloads.GetAttributesResponsePayload)
		items, err := s.batch(ctx, "id", attributesRequest(attributes.UniqueIdentifier))
		if err != nil {
			return err
		}
		o, err := s.objectOf("id", &items[0])
		if err != nil {
			return err
		}
		for _, attribute := range attributes.Attribute {
			is := true
			switch attribute.AttributeName {
			case kmip.AttributeNameState:
				is = attribute.AttributeValue == o.state
			case kmip.AttributeNameObjectType:
				is = attribute.AttributeValue == o.kind
			case kmip.AttributeNameCryptographicAlgorithm:
				is = attribute.AttributeValue == o.algorithm
			case kmip.AttributeNameCryptographicLength:
				is = attribute.AttributeValue == int32(o.bits) //nolint:gosec // the size of a key
			case kmip.AttributeNameActivationDate:
				is = o.activated.Equal(attribute.AttributeValue.(time.Time))
			}
			if !is {
				return errors.Join(errOther, errors.New(string(attribute.AttributeName)))
			}
		}
		return nil
	},
	kmip.OperationCreate: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		id, err := s.CreateAES(ctx, 256)
		return errors.Join(err, same(id == reply.(*payloads.CreateResponsePayload).UniqueIdentifier))
	},
	kmip.OperationCreateKeyPair: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		private, public, err := s.CreateRSA(ctx, 2048)
		pair := reply.(*payloads.CreateKeyPairResponsePayload)
		return errors.Join(err, same(private == pair.PrivateKeyUniqueIdentifier && public == pair.PublicKeyUniqueIdentifier))
	},
	kmip.OperationActivate: func(ctx context.Context, s *Session, _ kmip.OperationPayload) error { return s.activate(ctx, "id") },
	kmip.OperationRevoke: func(ctx context.Context, s *Session, _ kmip.OperationPayload) error {
		_, err := call[*payloads.RevokeResponsePayload](ctx, s, "id", &payloads.RevokeRequestPayload{UniqueIdentifier: "id"})
		return err
	},
	kmip.OperationDestroy: func(ctx context.Context, s *Session, _ kmip.OperationPayload) error { return s.Destroy(ctx, "id") },
	kmip.OperationSign: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		signed, err := call[*payloads.SignResponsePayload](ctx, s, "id", &payloads.SignRequestPayload{UniqueIdentifier: "id"})
		return errors.Join(err, same(err != nil || bytes.Equal(signed.SignatureData, reply.(*payloads.SignResponsePayload).SignatureData)))
	},
	kmip.OperationQuery: func(ctx context.Context, s *Session, _ kmip.OperationPayload) error {
		s.version = kmip.V1_0 // the case asks for it with Query
		return s.Ping(ctx)
	},
	kmip.OperationDiscoverVersions: func(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
		offered := reply.(*payloads.DiscoverVersionsResponsePayload).ProtocolVersion
		version, err := s.negotiate(ctx)
		return same((err == nil) == slices.ContainsFunc(versions, func(v kmip.ProtocolVersion) bool { return slices.Contains(offered, v) }) &&
			(err != nil || slices.Contains(offered, version)))
	},
}

// checkGet checks objects by their types.
func checkGet(ctx context.Context, s *Session, reply kmip.OperationPayload) error {
	got := reply.(*payloads.GetResponsePayload)
	switch object := got.Object.(type) {
	case *kmip.SymmetricKey:
		want, unusable := object.KeyMaterial()
		material, err := s.Get(ctx, got.UniqueIdentifier)
		return same((err == nil) == (unusable == nil) && bytes.Equal(material, want) && (err == nil || errors.Is(err, keys.ErrUnusable)))
	case *kmip.PublicKey:
		want, unusable := object.CryptoPublicKey()
		public, err := s.publicKey(ctx, "id", &describedObject{id: got.UniqueIdentifier, kind: kmip.ObjectTypePublicKey}, nil)
		if unusable != nil || err != nil {
			return same(unusable != nil && errors.Is(err, keys.ErrUnusable))
		}
		return same(want.(interface {
			Equal(other crypto.PublicKey) bool
		}).Equal(public))
	case *kmip.Certificate:
		want, unusable := object.X509Certificate()
		if unusable != nil {
			return unusable // the certificates of the cases are valid
		}
		found, err := s.certificates(ctx, &describedObject{links: []kmip.Link{{LinkType: kmip.LinkTypeCertificateLink, LinkedObjectIdentifier: got.UniqueIdentifier}}}, nil, want.PublicKey)
		return errors.Join(err, same(len(found) == 1 && found[0].Equal(want)))
	}
	if _, err := s.Get(ctx, got.UniqueIdentifier); !errors.Is(err, keys.ErrUnusable) {
		return errors.Join(errOther, err)
	}
	return nil
}

// describedObject is another name of the type object, because checkGet has a variable with the name object.
type describedObject = object

func TestTheRequestForANewKeyIsTheOneOfTheOASISTestCases(t *testing.T) {
	t.Parallel()
	all, err := oasisCases()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, c := range all {
		for _, message := range c.requests {
			for _, item := range message.BatchItem {
				request, ok := item.RequestPayload.(*payloads.CreateRequestPayload)
				if !ok || len(request.TemplateAttribute.Attribute) != 3 ||
					len(request.TemplateAttribute.Name) > 0 { //nolint:staticcheck // templates are deprecated, and the broker names none
					continue
				}
				bits, ok := request.TemplateAttribute.Attribute[1].AttributeValue.(int32)
				if !ok || request.TemplateAttribute.Attribute[0].AttributeValue != kmip.CryptographicAlgorithmAES ||
					request.TemplateAttribute.Attribute[2].AttributeValue != symmetricUsage {
					continue
				}
				compared++
				var sent kmip.RequestMessage
				m := &memory{seen: func(message *kmip.RequestMessage) { sent = *message }}
				s := m.session(t)
				s.version = message.Header.ProtocolVersion
				_, _ = s.CreateAES(t.Context(), int(bits)) // this server cannot make keys
				encoded := func(payload kmip.OperationPayload) []byte {
					return ttlv.MarshalTTLV(&kmip.RequestMessage{BatchItem: []kmip.RequestBatchItem{{Operation: kmip.OperationCreate, RequestPayload: payload}}})
				}
				if !bytes.Equal(encoded(sent.BatchItem[0].RequestPayload), encoded(request)) {
					t.Errorf("%s: the request is another one than the request of the case", name)
				}
			}
		}
	}
	if compared < 10 {
		t.Errorf("compared %d requests, want at least 10", compared)
	}
}
