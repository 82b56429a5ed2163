// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crypto-broker/crypto-broker-operator/broker/keys"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/caller"
	"github.com/crypto-broker/crypto-broker-operator/keyaccess/federation"
)

// keyAccessFederation is the part of the configuration about other key access services.
type keyAccessFederation struct {
	KeyFiles     []string        `json:"keyFiles"`
	Depth        int             `json:"depth"`
	RetrySeconds int             `json:"retrySeconds"`
	Peers        []keyAccessPeer `json:"peers"`
}

type keyAccessPeer struct {
	URL              string            `json:"url"`
	AuthoritiesFile  string            `json:"authoritiesFile"`
	Routes           []string          `json:"routes"`
	Issuers          []keyAccessIssuer `json:"issuers"`
	TimeoutSeconds   int               `json:"timeoutSeconds"`
	InsecureLoopback bool              `json:"insecureLoopback"`
}

// peers returns the other key access services, or nil if there are none, and adds their metrics to a registry.
func (c *keyAccessFile) peers(logger *slog.Logger, metrics *peerMetrics, registry *prometheus.Registry) (*federation.Peers, error) {
	f := c.Federation
	if f == nil {
		return nil, nil //nolint:nilnil // a service without peers is no error
	}
	config := federation.Config{
		URL: c.URL, Depth: f.Depth, Retry: time.Duration(f.RetrySeconds) * time.Second,
		Log: logger,
	}
	for i, name := range f.KeyFiles {
		text, err := readLimited(name, maxAuthorityBytes)
		if err != nil {
			return nil, fmt.Errorf("keyFiles[%d]: %w", i, err)
		}
		key, err := keys.ParsePrivateKey(text, 0)
		clear(text)
		if err != nil {
			return nil, fmt.Errorf("keyFiles[%d]: %s %w", i, name, err)
		}
		config.Keys = append(config.Keys, key)
	}
	switch {
	case c.Cluster == nil && len(f.Peers) == 0:
		return nil, fmt.Errorf("peers: found 0, expected 1 to %d", federation.MaxPeers)
	case c.Cluster != nil && len(f.Peers) > 0:
		return nil, errors.New("peers: found some together with cluster, expected peers of one place")
	}
	for i, file := range f.Peers {
		peer, err := file.peer(c.Issuers)
		if err != nil {
			return nil, fmt.Errorf("peers[%d]: %w", i, err)
		}
		config.Peers = append(config.Peers, peer)
	}
	config.Observe = metrics.observe
	peers, err := federation.New(config)
	if err != nil {
		return nil, err
	}
	metrics.peers = peers
	registry.MustRegister(metrics, metrics.requests, metrics.durations)
	return peers, nil
}

// peer returns a peer, whose callers have tokens of these issuers if it names none.
func (p *keyAccessPeer) peer(issuers []keyAccessIssuer) (federation.Peer, error) {
	if p.TimeoutSeconds < 0 {
		return federation.Peer{}, fmt.Errorf("timeoutSeconds: found %d, expected at least 1", p.TimeoutSeconds)
	}
	peer := federation.Peer{
		Peer: caller.Peer{URL: p.URL, LoopbackHTTP: p.InsecureLoopback}, Routes: p.Routes, Timeout: time.Duration(p.TimeoutSeconds) * time.Second,
	}
	var err error
	if p.AuthoritiesFile != "" {
		if peer.Authorities, err = readLimited(p.AuthoritiesFile, maxAuthorityBytes); err != nil {
			return peer, fmt.Errorf("authoritiesFile: %w", err)
		}
	}
	if p.Issuers != nil {
		issuers = p.Issuers
	}
	for _, issuer := range p.Issuers {
		if issuer.PlainBearer {
			return peer, errors.New("issuers: found plainBearer, expected none: only tokens that are bound to a key are forwarded")
		}
	}
	peer.Issuers, err = issuersOf(issuers)
	return peer, err
}
