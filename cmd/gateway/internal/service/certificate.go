// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/crypto-broker/crypto-broker-operator/broker/contract"
)

// errCertificate means that the certificate of a connection does not belong to the pod of the
// request's token. Its text is for the broker.
var errCertificate = errors.New("the certificate of the connection does not belong to the pod of the token")

// credentials returns the TLS of the server. If brokers need a certificate, a connection needs a
// client certificate that an authority has signed and that has not expired.
func (s *Server) credentials(o Options) credentials.TransportCredentials {
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: o.Certificate}
	if o.BrokerAuthorities == nil {
		return observedHandshakes{credentials.NewTLS(config), s} //nolint:forbidigo // a server, which has Go's TLS always
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true // each connection is checked with the present authorities
	demanding := config.Clone()
	demanding.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		authorities, err := o.BrokerAuthorities()
		if err != nil {
			return nil, err
		}
		ofConnection := config.Clone()
		ofConnection.ClientCAs = authorities
		return ofConnection, nil
	}
	return observedHandshakes{credentials.NewTLS(demanding), s} //nolint:forbidigo // as above
}

// observedHandshakes counts the handshakes that fail, and writes why to the log.
type observedHandshakes struct {
	credentials.TransportCredentials
	server *Server
}

// ServerHandshake implements credentials.TransportCredentials.
func (h observedHandshakes) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	encrypted, info, err := h.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		h.server.failedHandshakes.Add(1)
		h.server.log.LogAttrs(context.Background(), slog.LevelWarn, "refused a connection because of its handshake",
			slog.String("address", hostOf(conn.RemoteAddr())), slog.Any("error", err))
	}
	return encrypted, info, err
}

// Clone implements credentials.TransportCredentials.
func (h observedHandshakes) Clone() credentials.TransportCredentials {
	return observedHandshakes{h.TransportCredentials.Clone(), h.server}
}

// hasCertificateOf reports whether the connection of a request has the certificate of a pod. The
// handshake has verified the certificate.
func hasCertificateOf(ctx context.Context, pod Pod) bool {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	secured, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(secured.State.VerifiedChains) == 0 {
		return false
	}
	names := secured.State.PeerCertificates[0].URIs
	return len(names) == 1 && names[0].String() == contract.BrokerURI(pod.Namespace, pod.Name, pod.UID).String()
}
