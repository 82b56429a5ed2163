// SPDX-License-Identifier: Apache-2.0

package cryptobroker

import "context"

// RekeySession gives a session of a native version its next key, if the request of the client of the
// application asks for it. Of the request it uses Profile, Method, Path, Kid, EncAlg, Timestamp,
// Sequence and Body. The result has no plaintext. [Client.SealReply] makes the reply, with an empty
// plaintext.
//
// If the connection breaks while the broker serves the call, the client asks again, and the broker
// refuses what it has done already: then the client of the application goes on with the next key.
func (c *Client) RekeySession(ctx context.Context, r OpenRequestRequest) (result OpenRequestResult, err error) {
	p, err := c.begin(ctx, rekeySession, r.Profile, len(r.Method)+len(r.Path)+len(r.Kid)+len(r.EncAlg)+len(r.Timestamp)+len(r.Sequence)+len(r.Body))
	if err != nil {
		return result, err
	}
	defer c.end(p)
	b := appendString(*p.request, rekeyMethod, r.Method)
	b = appendString(b, rekeyPath, r.Path)
	b = appendString(b, rekeyKid, r.Kid)
	b = appendString(b, rekeyEncAlg, r.EncAlg)
	b = appendString(b, rekeyTimestamp, r.Timestamp)
	b = appendString(b, rekeySequence, r.Sequence)
	b = appendBytes(b, rekeyBody, r.Body)
	*p.request = p.trace.appendMetadata(b, rekeyMetadata)
	if err := c.do(ctx, p); err != nil {
		return result, err
	}
	result.Deprecation, err = c.read(p, func(f *fields) (err error) {
		switch f.number {
		case rekeyedID:
			result.SessionID = string(f.bytes)
		case rekeyedPath:
			result.Path = string(f.bytes)
		case rekeyedClientPath:
			result.ClientPath = string(f.bytes)
		case rekeyedSequence:
			result.Sequence = string(f.bytes)
		case rekeyedDescriptor:
			result.Algorithm, err = c.algorithm(f.bytes)
		}
		return err
	})
	if err == nil && result.SessionID == "" {
		err = p.missing("session")
	}
	if err != nil {
		return OpenRequestResult{}, err
	}
	return result, nil
}
