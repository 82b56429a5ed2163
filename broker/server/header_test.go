// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestHeadersAboveTheLimitFailOneCallWithACodeThatNobodyRetries(t *testing.T) {
	conn := connect(t, start(t, sha256Profile).socket(""))
	with := func(size int) error {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		ctx = metadata.AppendToOutgoingContext(ctx, "x-large", strings.Repeat("a", size))
		var reply []byte
		return conn.Invoke(ctx, methodHashData, []byte(request(nil)), &reply, grpc.ForceCodecV2(wire{}))
	}
	if err := with(7 << 10); err != nil {
		t.Errorf("below the limit: %v", err)
	}
	// The broker announces its limit when a connection begins, and gRPC clients respect it.
	const want = "header list size to send violates the maximum size (8192 bytes) set by server"
	for _, size := range []int{8 << 10, 60 << 10, 2 << 20} {
		if got := status.Convert(with(size)); got.Code() != codes.Internal || got.Message() != want {
			t.Errorf("%d bytes: %s %q, want %s %q", size, got.Code(), got.Message(), codes.Internal, want)
		}
	}
	ask(t, conn, methodHashData, request(nil))
}
