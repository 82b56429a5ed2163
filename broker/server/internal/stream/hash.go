// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	streamv1 "github.com/crypto-broker/crypto-broker-operator/api/grpc/cryptobroker/stream/v1"
	"github.com/crypto-broker/crypto-broker-operator/broker/engine"
	"github.com/crypto-broker/crypto-broker-operator/broker/profile"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/flow"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/limits"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/requests"
	"github.com/crypto-broker/crypto-broker-operator/broker/server/internal/wirev1"
)

// hashStream serves HashStream, which is HashData of an input that comes in chunks.
func (s *streamService) hashStream(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	p, err := flow.ConnOf(ctx).Enter(profile.OpHashData)
	if err != nil {
		return err
	}
	h := s.newChunks(profile.OpHashData, stream, &streamv1.HashStreamRequest{}, limits.MaxInputSize)
	if err := h.Open(ctx, p, profile.OpHashData, limits.MaxRequestSize, s.IdleTime); err != nil {
		p.End()
		return err
	}
	return h.run(&hashing{chunks: h}, p.End)
}

// hashing is one call of HashStream.
type hashing struct {
	*chunks
	profile string
	raw     bool
	digest  *engine.Digest
	name    string // the name of the algorithm
}

// begin implements chunked. The digest keeps its algorithm even if the profile changes while
// chunks arrive.
func (h *hashing) begin(wire []byte) error {
	start := &streamv1.HashStreamStart{}
	if err := h.readStart(wire, start); err != nil {
		return err
	}
	var err error
	c := &h.call
	if h.raw, err = wirev1.RawHash(c, start.GetOutputFormat()); err != nil {
		return err
	}
	h.profile = start.GetProfile()
	policy, err := h.server.HashPolicy(c, h.profile)
	if err != nil {
		return err
	}
	h.digest, h.name = engine.NewDigest(policy), policy.Algorithm().String()
	return nil
}

func (h *hashing) ready() error { return nil }

func (h *hashing) add(chunk []byte) error {
	h.digest.Add(chunk)
	return nil
}

// end returns the digest. HashDataResponse has the fields of HashStreamResponse.
func (h *hashing) end() (proto.Message, error) {
	c := &h.call
	var buffer [engine.MaxDigestSize]byte
	reply := wirev1.HashReply(c, h.profile, h.name, h.digest.Append(buffer[:0]), h.raw)
	requests.Identify(reply, chunksRepliedMetadata, h.metadata, c.Warning)
	return reply, nil
}

func (h *hashing) close() {}
