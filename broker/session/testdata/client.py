# SPDX-License-Identifier: Apache-2.0
"""A client of the protocol of encrypted sessions, from fixed inputs: JSON in, JSON out."""

import base64
import json
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

given = json.load(sys.stdin)
b64, unb64 = lambda data: base64.b64encode(data).decode(), base64.b64decode

own = ec.derive_private_key(int(given["scalar"], 16), ec.SECP256R1())
server = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unb64(given["serverPublicKey"]))
client_id = given["clientId"]
info = "SESSION|A256GCM|" + (client_id or "AUTH")
key = HKDF(hashes.SHA256(), 32, given["id"].encode(), info.encode()).derive(own.exchange(ec.ECDH(), server))

kid, time, nonce, iv = "session:" + given["id"], given["timestamp"], given["nonce"], unb64(given["iv"])
v2 = "|".join([time, nonce, kid, client_id])
aad = v2 if client_id else "|".join(["POST", given["path"], time, nonce, kid])
sealed = AESGCM(key).encrypt(iv, given["plaintext"].encode(), aad.encode())
request = {"method": "POST", "path": given["path"], "kid": kid, "encAlg": "A256GCM"}
if client_id:
    request |= {"idempotencyKey": time + "." + nonce, "clientID": client_id, "body": b64(iv + sealed)}
else:
    body = b64(sealed[:-16]).encode()
    request |= {"iv": b64(iv), "tag": b64(sealed[-16:]), "aad": b64(aad.encode()), "nonce": nonce, "timestamp": time, "body": b64(body)}

opened = None
if reply := given.get("reply"):
    body = unb64(reply["Body"])  # bytes are base64 in JSON
    if client_id:
        time, nonce = reply["IdempotencyKey"].split(".")
        whole, aad = body, "|".join([time, nonce, kid, reply["ClientID"]])
    else:
        whole = unb64(reply["IV"]) + unb64(body) + unb64(reply["Tag"])
        aad = "|".join(["200", given["path"], reply["Timestamp"], reply["Nonce"], kid])
        assert unb64(reply["AAD"]).decode() == aad
    opened = AESGCM(key).decrypt(whole[:12], whole[12:], aad.encode()).decode()

json.dump({"key": b64(key), "request": request, "opened": opened}, sys.stdout)
