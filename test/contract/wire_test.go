// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	// The messages, which are found by their names.
	_ "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/session/v1"
	_ "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	_ "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v0"
	_ "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/v1"
)

// callLimit is far above what a call takes; only a failure reaches it.
const callLimit = time.Minute

// chunkSize is the size of the chunks of streams, in bytes.
const chunkSize = 64 << 10

// generation is a version of the wire.
type generation string

// The versions of the wire.
const (
	v1       generation = "v1"
	v0       generation = "v0"
	exchange generation = "Exchange"
)

// sessionOperations are the operations of encrypted sessions, which have a service of their own.
var sessionOperations = []string{"InitSession", "OpenRequest", "SealReply", "RekeySession", "CloseSession"}

// wire is a driver without a client: it sends the messages themselves.
type wire struct {
	conn       *grpc.ClientConn
	generation generation
}

func newWire(socket string, g generation) (*wire, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	return &wire{conn: conn, generation: g}, err
}

func (w *wire) close() error { return w.conn.Close() }

func (w *wire) call(c Call) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	var reply any
	var err error
	switch {
	case c.Operation == "Health":
		reply, err = w.health(ctx)
	case strings.HasSuffix(c.Operation, "Stream"):
		if w.generation != v1 {
			return Answer{Unsupported: true}, nil
		}
		reply, err = w.stream(ctx, c)
	case slices.Contains(sessionOperations, c.Operation):
		if w.generation != v1 {
			return Answer{Unsupported: true}, nil
		}
		reply, err = w.unary(ctx, c, "cryptobroker.session.v1", "SessionService")
	case w.generation == exchange:
		reply, err = w.exchange(ctx, c)
	case w.generation == v0:
		reply, err = w.unary(ctx, c, "CryptoBroker", "CryptoGrpc")
	default:
		reply, err = w.unary(ctx, c, "cryptobroker.v1", "CryptoService")
	}
	if errors.Is(err, protoregistry.NotFound) {
		return Answer{Unsupported: true}, nil
	}
	if s, ok := status.FromError(err); ok && err != nil {
		profile, _ := c.Request["profile"].(string)
		return Answer{Error: &CallError{Code: codeName(s.Code().String()), Operation: c.profileOperation(), Profile: profile, Message: s.Message()}}, nil
	}
	if err != nil {
		return Answer{}, err
	}
	return readReply(reply)
}

// readReply turns a message into the form of a driver's line.
func readReply(reply any) (Answer, error) {
	answer := Answer{}
	text, err := json.Marshal(reply)
	if message, ok := reply.(proto.Message); ok {
		text, err = protojson.Marshal(message)
	}
	if err != nil {
		return Answer{}, err
	}
	return answer, json.Unmarshal(text, &answer.Reply)
}

// newMessage returns a message by its name, with the fields of a value of encoding/json.
func newMessage(name string, fields any) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	message := kind.New().Interface()
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return message, protojson.Unmarshal(text, message)
}

func (w *wire) unary(ctx context.Context, c Call, pkg, service string) (proto.Message, error) {
	request, err := newMessage(pkg+"."+c.Operation+"Request", c.Request)
	if err != nil {
		return nil, err
	}
	reply, err := newMessage(pkg+"."+c.Operation+"Response", struct{}{})
	if err != nil {
		return nil, err
	}
	return reply, w.conn.Invoke(ctx, "/"+pkg+"."+service+"/"+c.Operation, request, reply)
}

func (w *wire) health(ctx context.Context) (proto.Message, error) {
	reply := new(healthpb.HealthCheckResponse)
	return reply, w.conn.Invoke(ctx, healthpb.Health_Check_FullMethodName, new(healthpb.HealthCheckRequest), reply)
}

// exchange makes a call on a stream of its own.
func (w *wire) exchange(ctx context.Context, c Call) (proto.Message, error) {
	name := strings.ToLower(c.Operation[:1]) + c.Operation[1:]
	request, err := newMessage("cryptobroker.stream.v1.ExchangeRequest", map[string]any{"calls": []any{map[string]any{"id": "7", name: c.Request}}})
	if err != nil {
		return nil, err
	}
	response, err := newMessage("cryptobroker.stream.v1.ExchangeResponse", struct{}{})
	if err != nil {
		return nil, err
	}
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/cryptobroker.stream.v1.StreamService/Exchange")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(stream.SendMsg(request), stream.CloseSend()); err != nil {
		return nil, err
	}
	if err := stream.RecvMsg(response); err != nil {
		return nil, err
	}
	replies := response.ProtoReflect().Get(response.ProtoReflect().Descriptor().Fields().ByName("replies")).List()
	if replies.Len() != 1 {
		return nil, fmt.Errorf("the broker sent %d replies to a call", replies.Len())
	}
	reply := replies.Get(0).Message()
	which := reply.WhichOneof(reply.Descriptor().Oneofs().ByName("result"))
	if which == nil {
		return nil, errors.New("the broker sent a reply without a result")
	}
	result := reply.Get(which).Message()
	if which.Name() != "status" {
		return result.Interface(), nil
	}
	fields := result.Descriptor().Fields()
	return nil, status.Error(codes.Code(result.Get(fields.ByName("code")).Int()), result.Get(fields.ByName("message")).String())
}

// stream makes a call whose input, and output, has any size.
func (w *wire) stream(ctx context.Context, c Call) (map[string]any, error) {
	start := map[string]any{}
	for name, value := range c.Request {
		if name != "input" {
			start[name] = value
		}
	}
	encoded, _ := c.Request["input"].(string)
	input, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/cryptobroker.stream.v1.StreamService/"+c.Operation)
	if err != nil {
		return nil, err
	}
	parts := []map[string]any{{"start": start}}
	for chunk := range slices.Chunk(input, chunkSize) {
		parts = append(parts, map[string]any{"chunk": chunk})
	}
	for _, part := range parts {
		message, err := newMessage("cryptobroker.stream.v1."+c.Operation+"Request", part)
		if err != nil {
			return nil, err
		}
		// The status of the call comes with RecvMsg.
		if err := stream.SendMsg(message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	return collect(stream, c.Operation)
}

// collect returns the fields of the last message of a stream, and its data.
func collect(stream grpc.ClientStream, operation string) (map[string]any, error) {
	var output []byte
	reply := map[string]any{}
	for {
		message, err := newMessage("cryptobroker.stream.v1."+operation+"Response", struct{}{})
		if err != nil {
			return nil, err
		}
		if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
			reply["output"] = output
			return reply, nil
		} else if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(message)
		if err != nil {
			return nil, err
		}
		if operation == "HashStream" {
			if err := json.Unmarshal(text, &reply); err != nil {
				return nil, err
			}
			continue
		}
		var part struct {
			Chunk []byte         `json:"chunk"`
			End   map[string]any `json:"end"`
		}
		if err := json.Unmarshal(text, &part); err != nil {
			return nil, err
		}
		output = append(output, part.Chunk...)
		if part.End != nil {
			reply = part.End
		}
	}
}

// words finds where a name such as "NotFound" gets an underscore.
var words = regexp.MustCompile(`([a-z])([A-Z])`)

// codeName returns the name of a code as the standard of gRPC has it, from the name in Go.
func codeName(name string) string {
	return strings.ToUpper(words.ReplaceAllString(name, "${1}_$2"))
}
