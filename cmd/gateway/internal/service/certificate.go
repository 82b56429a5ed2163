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

// ErrCertificate means that the certificate of a connection is not the one of the pod whose token
// a request has. Its text is for the broker.
var ErrCertificate = errors.New("the certificate of the connection is not the one of the pod of the token")

// credentials returns the TLS of the server. If brokers need a certificate, there is no connection
// without one that an authority has signed for a client and that has not expired.
func (s *Server) credentials(o Options) credentials.TransportCredentials {
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: o.Certificate}
	if o.BrokerAuthorities == nil {
		return credentials.NewTLS(config) //nolint:forbidigo // a server, which has Go's TLS always
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
	return logged{credentials.NewTLS(demanding), s.log} //nolint:forbidigo // as above
}

// logged writes why there is no connection to the log.
type logged struct {
	credentials.TransportCredentials
	log *slog.Logger
}

// ServerHandshake implements credentials.TransportCredentials.
func (l logged) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	encrypted, info, err := l.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		l.log.LogAttrs(context.Background(), slog.LevelWarn, "refused a connection because of its handshake",
			slog.String("address", hostOf(conn.RemoteAddr())), slog.Any("error", err))
	}
	return encrypted, info, err
}

// Clone implements credentials.TransportCredentials.
func (l logged) Clone() credentials.TransportCredentials {
	return logged{l.TransportCredentials.Clone(), l.log}
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
