# SPDX-License-Identifier: Apache-2.0
"""A client of the protocol of encrypted sessions, from fixed inputs: a flat JSON of texts in, and one out."""

import base64
import json
import sys

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

given = json.load(sys.stdin)
b64, unb64 = lambda data: base64.b64encode(data).decode(), base64.b64decode
version = given["version"]

own = ec.derive_private_key(int(given["scalar"], 16), ec.SECP256R1())
share = unb64(given["serverPublicKey"])
shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), share))


def extract(salt, data):
    mac = hmac.HMAC(salt or bytes(32), hashes.SHA256())
    mac.update(data)
    return mac.finalize()


def expand(secret, info):
    return HKDFExpand(hashes.SHA256(), 32, info).derive(secret)


def hpke(info):
    """The secret of HPKE (RFC 9180) in base mode, with DHKEM(P-256, HKDF-SHA256) and export-only."""
    kem, suite = b"KEM\x00\x10", b"HPKE\x00\x10\x00\x01\xff\xff"
    labeled_extract = lambda id, salt, label, ikm: extract(salt, b"HPKE-v1" + id + label + ikm)
    labeled_expand = lambda id, prk, label, info: expand(prk, b"\x00\x20HPKE-v1" + id + label + info)
    prk = labeled_extract(kem, b"", b"eae_prk", shared)
    secret = labeled_expand(kem, prk, b"shared_secret", share + unb64(given["clientPublicKey"]))
    context = b"\x00" + labeled_extract(suite, b"", b"psk_id_hash", b"") + labeled_extract(suite, b"", b"info_hash", info)
    exporter = labeled_expand(suite, labeled_extract(suite, secret, b"secret", b""), b"exp", context)
    return labeled_expand(suite, exporter, b"sec", b"secret")


kid, time, iv = "session:" + given["id"], given["timestamp"], unb64(given["iv"])
path, nonce, client_id, sequence = given["path"], given["nonce"], given["clientId"], given["sequence"]
request = {"method": "POST", "path": path, "kid": kid, "encAlg": "A256GCM"}
if version == "native":
    info = "\n".join(["session-hpke-p256", given["profile"], "A256GCM", given["id"], given["lifetime"], given["clientPublicKey"]])
    secret = hpke(info.encode())
    key, reply_key, following = expand(secret, b"request"), expand(secret, b"reply"), expand(secret, b"rekey")
    aad = "|".join(["POST", path, time, sequence, kid])
else:
    key = HKDF(hashes.SHA256(), 32, given["id"].encode(), b"SESSION|A256GCM|" + (client_id or "AUTH").encode()).derive(shared)
    reply_key, following = key, b""
    aad = "|".join([time, nonce, kid, client_id] if version == "2" else ["POST", path, time, nonce, kid])
sealed = AESGCM(key).encrypt(iv, given["plaintext"].encode(), aad.encode())
match version:
    case "1":
        body = b64(sealed[:-16]).encode()
        request |= {"iv": b64(iv), "tag": b64(sealed[-16:]), "aad": b64(aad.encode()), "nonce": nonce, "timestamp": time, "body": b64(body)}
    case "2":
        request |= {"idempotencyKey": time + "." + nonce, "clientId": client_id, "body": b64(iv + sealed)}
    case "native":
        request |= {"timestamp": time, "sequence": sequence, "body": b64(iv + sealed)}

body = unb64(given["replyBody"])
match version:
    case "1":
        whole = unb64(given["replyIV"]) + unb64(body) + unb64(given["replyTag"])
        aad = "|".join(["200", path, given["replyTimestamp"], given["replyNonce"], kid])
        assert unb64(given["replyAAD"]).decode() == aad
    case "2":
        time, nonce = given["replyIdempotencyKey"].split(".")
        whole, aad = body, "|".join([time, nonce, kid, client_id])
    case "native":
        whole, aad = body, "|".join(["REPLY", path, sequence, kid])
opened = AESGCM(reply_key).decrypt(whole[:12], whole[12:], aad.encode()).decode()

json.dump(request | {"key": b64(key), "replyKey": b64(reply_key), "nextSecret": b64(following), "opened": opened}, sys.stdout)
