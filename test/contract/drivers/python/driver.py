# SPDX-License-Identifier: Apache-2.0
"""The driver of the Python clients for the cases of the contract. README.md two directories above describes drivers."""

from __future__ import annotations

import asyncio
import base64
import datetime
import inspect
import io
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import cryptobroker
from cryptobroker import KeyId, RawKey, SignatureFormat, WrappedKey

CALL_LIMIT = 60.0  # seconds

Request = dict[str, Any]
Reply = dict[str, Any]


def octets(request: Request, name: str) -> bytes:
    """The value of a field of bytes."""
    return base64.b64decode(request.get(name, ""))


def key_of(source: Request) -> KeyId | RawKey:
    """The key of the message KeySource."""
    if "rawKey" in source:
        return RawKey(octets(source, "rawKey"))
    return KeyId(source.get("keyId", ""))


def signing(request: Request) -> dict[str, Any]:
    """The arguments of sign_data and verify_data that both have."""
    source = request.get("keySource", {})
    keys = [key_of(key) for key in source.get("componentKeys", {}).get("keys", [])]
    name = request.get("signatureFormat", "SIGNATURE_FORMAT_DEFAULT").removeprefix("SIGNATURE_FORMAT_")
    key, second = keys if len(keys) == 2 else (key_of(source.get("single", {})), None)
    return {"key": key, "post_quantum_key": second, "format": SignatureFormat[name]}


# The fields of requests that are encrypted, and of replies of opened ones, by the names of arguments and attributes.
ENCRYPTED = {"method": "method", "path": "path", "kid": "kid", "enc_alg": "encAlg"}
ENCRYPTED |= {"timestamp": "timestamp", "sequence": "sequence"}
OPENED = {"sessionId": "session_id", "path": "path", "clientPath": "client_path", "sequence": "sequence"}


def texts(request: Request, names: dict[str, str]) -> dict[str, str]:
    """The arguments with texts of a request, by the names of its fields."""
    return {argument: request.get(name, "") for argument, name in names.items()}


def time_of(request: Request, name: str) -> datetime.datetime | None:
    """The value of a field with a time."""
    seconds = int(request.get(name, 0))
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc) if seconds else None


def reply_of(result: Any, fields: dict[str, str]) -> Reply:
    """The reply with fields of a result, and with algorithm and warning if it has them."""
    reply: Reply = {}
    for name, attribute in fields.items():
        value = getattr(result, attribute)
        reply[name] = base64.b64encode(value).decode() if isinstance(value, bytes) else value
    if algorithm := getattr(result, "algorithm", ""):
        reply["descriptor"] = {"algorithm": algorithm}
    if warning := result.deprecation:
        reply["metadata"] = {
            "deprecation": {
                "profile": warning.profile,
                "replacedBy": warning.replaced_by,
                "deprecatedSince": warning.since,
                "removeAfter": warning.remove_after,
                "reason": warning.reason,
            }
        }
    return reply


class Driver:
    """Makes the calls of one client. A method has the name of its operation."""

    def __init__(self, client: cryptobroker.Client | cryptobroker.AsyncClient) -> None:
        self._client: Any = client

    async def _call(self, method: str, /, *arguments: Any, **options: Any) -> Any:
        result = getattr(self._client, method)(*arguments, **options, timeout=CALL_LIMIT)
        return await result if inspect.isawaitable(result) else result

    async def _stream(self, method: str, request: Request, **options: Any) -> Reply:
        source = io.BytesIO(octets(request, "input"))
        stream = getattr(self._client, method)(
            source, profile=request.get("profile", ""), timeout=CALL_LIMIT, **options
        )
        if isinstance(stream, cryptobroker.CipherStream):
            output = b"".join(stream)
        else:
            output = b"".join([piece async for piece in stream])
        return reply_of(stream.result, {}) | {"output": base64.b64encode(output).decode()}

    async def Health(self, _: Request) -> Reply:
        return {"status": (await self._call("health")).name}

    async def HashData(self, r: Request) -> Reply:
        result = await self._call("hash_data", octets(r, "input"), profile=r.get("profile", ""))
        return reply_of(result, {"hashValueRaw": "digest"})

    async def HashStream(self, r: Request) -> Reply:
        result = await self._call("hash_stream", io.BytesIO(octets(r, "input")), profile=r.get("profile", ""))
        return reply_of(result, {"hashValueRaw": "digest"})

    async def EncryptStream(self, r: Request) -> Reply:
        return await self._stream("encrypt_stream", r, key_id=r.get("keyId", ""), context=octets(r, "context"))

    async def DecryptStream(self, r: Request) -> Reply:
        return await self._stream("decrypt_stream", r, context=octets(r, "context"))

    async def SignCertificate(self, r: Request) -> Reply:
        result = await self._call(
            "sign_certificate",
            r.get("csr", ""),
            ca_private_key=r.get("caPrivateKey", ""),
            ca_certificate=r.get("caCert", ""),
            not_before=time_of(r, "validNotBefore"),
            not_after=time_of(r, "validNotAfter"),
            subject=r.get("subject", ""),
            crl_distribution_points=r.get("crlDistributionPoints", []),
            profile=r.get("profile", ""),
        )
        return reply_of(result, {"der": "certificate"})

    async def EncryptData(self, r: Request) -> Reply:
        metadata = r.get("encryptMetadata", {})
        result = await self._call(
            "encrypt_data",
            octets(r, "plaintext"),
            key=key_of(r.get("keySource", {})),
            nonce=octets(metadata, "nonce"),
            additional_data=octets(metadata, "aad"),
            profile=r.get("profile", ""),
        )
        used = {"nonce": result.nonce, "tag": result.tag}
        made = {name: base64.b64encode(value).decode() for name, value in used.items()} | {"keyId": result.key_id}
        return reply_of(result, {"ciphertext": "ciphertext"}) | {"cipherMetadata": made}

    async def DecryptData(self, r: Request) -> Reply:
        metadata = r.get("decryptMetadata", {})
        result = await self._call(
            "decrypt_data",
            octets(r, "ciphertext"),
            key=key_of(r.get("keySource", {})),
            nonce=octets(metadata, "nonce"),
            tag=octets(metadata, "tag"),
            additional_data=octets(metadata, "aad"),
            profile=r.get("profile", ""),
        )
        return reply_of(result, {"plaintext": "plaintext"})

    async def SignData(self, r: Request) -> Reply:
        result = await self._call("sign_data", octets(r, "input"), **signing(r), profile=r.get("profile", ""))
        return reply_of(result, {"signature": "signature"})

    async def VerifyData(self, r: Request) -> Reply:
        result = await self._call(
            "verify_data", octets(r, "input"), octets(r, "signature"), **signing(r), profile=r.get("profile", "")
        )
        return reply_of(result, {"valid": "valid"})

    async def GenerateDataKey(self, r: Request) -> Reply:
        result = await self._call(
            "generate_data_key",
            r.get("keyId", ""),
            context=octets(r, "context"),
            without_data_key=r.get("withoutDataKey", False),
            profile=r.get("profile", ""),
        )
        return reply_of(result, {"dataKey": "data_key", "wrappedKey": "wrapped_key"})

    async def WrapKey(self, r: Request) -> Reply:
        result = await self._call(
            "wrap_key",
            r.get("keyId", ""),
            octets(r, "dataKey"),
            context=octets(r, "context"),
            profile=r.get("profile", ""),
        )
        return reply_of(result, {"wrappedKey": "wrapped_key"})

    async def UnwrapKey(self, r: Request) -> Reply:
        result = await self._call(
            "unwrap_key", octets(r, "wrappedKey"), context=octets(r, "context"), profile=r.get("profile", "")
        )
        return reply_of(result, {"dataKey": "data_key"})

    async def UnwrapBatch(self, r: Request) -> Reply:
        keys = [WrappedKey(octets(key, "wrappedKey"), octets(key, "context")) for key in r.get("keys", [])]
        result = await self._call("unwrap_batch", keys, profile=r.get("profile", ""))
        results: list[Reply] = []
        for key in result.keys:
            if key.error is None:
                results.append({"dataKey": base64.b64encode(key.data_key).decode()})
            else:
                results.append({"code": key.error.code.value, "message": key.error.reason})
        return reply_of(result, {}) | {"results": results}

    async def RewrapKey(self, r: Request) -> Reply:
        result = await self._call(
            "rewrap_key",
            octets(r, "wrappedKey"),
            context=octets(r, "context"),
            key_id=r.get("keyId", ""),
            profile=r.get("profile", ""),
        )
        return reply_of(result, {"wrappedKey": "wrapped_key", "unchanged": "unchanged"})

    async def GetPublicKey(self, r: Request) -> Reply:
        result = await self._call("get_public_key", r.get("keyId", ""), profile=r.get("profile", ""))
        return reply_of(result, {"der": "der", "pem": "pem", "version": "version"})

    async def InitSession(self, r: Request) -> Reply:
        names = {"key_agreement": "keyAgreement", "client_public_key": "clientPublicKey", "nonce": "nonce"}
        names |= {"timestamp": "timestamp", "client_id": "clientId"}
        result = await self._call(
            "init_session", ttl_seconds=r.get("ttlSec", 0), profile=r.get("profile", ""), **texts(r, names)
        )
        fields = {"sessionId": "session_id", "serverPublicKey": "server_public_key", "encAlg": "enc_alg"}
        fields |= {"expiresInSec": "expires_in_seconds", "signature": "signature"}
        return reply_of(result, fields | {"signatureAlgorithm": "signature_algorithm"})

    async def OpenRequest(self, r: Request) -> Reply:
        names = ENCRYPTED | {"iv": "iv", "tag": "tag", "aad": "aad", "nonce": "nonce"}
        names |= {"idempotency_key": "idempotencyKey", "client_id": "clientId"}
        result = await self._call("open_request", octets(r, "body"), profile=r.get("profile", ""), **texts(r, names))
        return reply_of(result, OPENED | {"plaintext": "plaintext", "clientId": "client_id"})

    async def RekeySession(self, r: Request) -> Reply:
        result = await self._call(
            "rekey_session", octets(r, "body"), profile=r.get("profile", ""), **texts(r, ENCRYPTED)
        )
        return reply_of(result, OPENED)

    async def SealReply(self, r: Request) -> Reply:
        names = {"session_id": "sessionId", "client_path": "clientPath", "sequence": "sequence"}
        result = await self._call("seal_reply", octets(r, "plaintext"), profile=r.get("profile", ""), **texts(r, names))
        fields = {name: name for name in ("kid", "iv", "tag", "aad", "nonce", "timestamp", "sequence", "body")}
        fields |= {"encAlg": "enc_alg", "idempotencyKey": "idempotency_key", "clientId": "client_id"}
        return reply_of(result, fields)

    async def CloseSession(self, r: Request) -> Reply:
        await self._call("close_session", r.get("sessionId", ""), profile=r.get("profile", ""))
        return {}

    async def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """Makes a call and returns a line."""
        name = call["operation"]
        perform: Callable[[Request], Awaitable[Reply]] | None = getattr(self, name, None) if name[0].isupper() else None
        if perform is None:
            return {"unsupported": True}
        try:
            return {"reply": await perform(call.get("request") or {})}
        except cryptobroker.CryptoBrokerError as error:
            said = {"code": error.code.name, "operation": error.operation}
            return {"error": said | {"profile": error.profile, "message": error.reason}}


async def main() -> None:
    """Answers each line."""
    exchange = "--unary" not in sys.argv
    kind = cryptobroker.AsyncClient if "--asyncio" in sys.argv else cryptobroker.Client
    client = kind(exchange=exchange)
    driver = Driver(client)
    for line in sys.stdin:
        print(json.dumps(await driver.answer(json.loads(line))), flush=True)
    closing = client.close()
    if closing is not None:
        await closing


asyncio.run(main())
