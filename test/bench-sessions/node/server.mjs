// SPDX-License-Identifier: Apache-2.0

// A minimal server of encrypted sessions, version 1, in the way of the protocol's first servers: HTTP of
// Node, cryptography of node:crypto, sessions and nonces in Redis. It answers a request with what the
// request had. "make bench-sessions" measures it beside the broker.
//
//   node server.mjs REDIS_SOCKET
//
// It prints the port that it listens on.

import { createCipheriv, createDecipheriv, createECDH, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createClient } from 'redis'

const window = 300_000 // milliseconds
const nonceSeconds = 300

const redis = createClient({ socket: { path: process.argv[2] } })
await redis.connect()

// begin serves POST /session/init.
async function begin (headers, body) {
  await checkTime(headers)
  const asked = JSON.parse(body)
  if (asked.keyAgreement !== 'ECDH_P256') throw new Error('another key agreement')
  const own = createECDH('prime256v1')
  own.generateKeys()
  const secret = own.computeSecret(Buffer.from(asked.clientPublicKey, 'base64'))
  const id = 'S-' + randomBytes(16).toString('hex')
  const key = Buffer.from(hkdfSync('sha256', secret, id, 'SESSION|A256GCM|AUTH', 32))
  const ttl = Math.min(3600, Math.max(300, asked.ttlSec))
  const session = { key: key.toString('base64'), type: 'AUTH', expiresAt: Date.now() + ttl * 1000 }
  await redis.set('sess:' + id, JSON.stringify(session), { EX: ttl })
  return JSON.stringify({ sessionId: id, serverPublicKey: own.getPublicKey('base64'), encAlg: 'A256GCM', expiresInSec: ttl })
}

// checkTime checks the time of a request, and that its nonce is new.
async function checkTime (headers) {
  const timestamp = Number(headers['x-timestamp'])
  if (!(Math.abs(Date.now() - timestamp) <= window)) throw new Error('too old or too new')
  if (await redis.set('nonce:' + headers['x-nonce'], '1', { NX: true, EX: nonceSeconds }) !== 'OK') throw new Error('not new')
}

// serve serves an encrypted request, and returns headers and body of the reply.
async function serve (method, path, headers, body) {
  await checkTime(headers)
  const kid = headers['x-kid']
  const stored = await redis.get('sess:' + kid.slice('session:'.length))
  if (stored === null) throw new Error('no session')
  const key = Buffer.from(JSON.parse(stored).key, 'base64')
  const wanted = `${method}|${path}|${headers['x-timestamp']}|${headers['x-nonce']}|${kid}`
  if (Buffer.from(headers['x-aad'], 'base64').toString() !== wanted) throw new Error('another AAD')
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(headers['x-iv'], 'base64'))
  decipher.setAAD(Buffer.from(wanted))
  decipher.setAuthTag(Buffer.from(headers['x-tag'], 'base64'))
  const plaintext = Buffer.concat([decipher.update(Buffer.from(body, 'base64')), decipher.final()])

  const iv = randomBytes(12)
  const nonce = randomUUID()
  const timestamp = String(Date.now())
  const aad = Buffer.from(`200|${path}|${timestamp}|${nonce}|${kid}`)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  cipher.setAAD(aad)
  const sealed = Buffer.concat([cipher.update(plaintext), cipher.final()]).toString('base64')
  return [{
    'Content-Type': 'application/octet-stream',
    'X-Kid': kid,
    'X-Enc-Alg': 'A256GCM',
    'X-IV': iv.toString('base64'),
    'X-Tag': cipher.getAuthTag().toString('base64'),
    'X-AAD': aad.toString('base64'),
    'X-Nonce': nonce,
    'X-Timestamp': timestamp
  }, sealed]
}

function read (request) {
  return new Promise((resolve, reject) => {
    const parts = []
    request.on('data', part => parts.push(part))
    request.on('end', () => resolve(Buffer.concat(parts).toString()))
    request.on('error', reject)
  })
}

const server = createServer(async (request, response) => {
  try {
    const body = await read(request)
    if (request.url === '/session/init') {
      const answer = await begin(request.headers, body)
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(answer) }).end(answer)
      return
    }
    const [headers, answer] = await serve(request.method, request.url, request.headers, body)
    response.writeHead(200, { ...headers, 'Content-Length': Buffer.byteLength(answer) }).end(answer)
  } catch {
    const answer = '{"error":"CRYPTO_ERROR"}'
    response.writeHead(400, { 'Content-Type': 'application/json', 'Content-Length': answer.length }).end(answer)
  }
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
