# SPDX-License-Identifier: Apache-2.0
"""A service that answers POST /hash with the digest of the body."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request

from cryptobroker import AsyncClient, CryptoBrokerError, Health

MAX_BODY = 1 << 20  # what HashData takes, in bytes


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Has one client from the start of the process until its requests have ended."""
    async with AsyncClient(profile="Default", timeout=10) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/healthz")
async def healthz() -> str:
    """Says that the process answers."""
    return "ok"


@app.get("/readyz")
async def readyz(request: Request) -> str:
    """Says whether the broker serves."""
    try:
        health = await request.app.state.client.health()
    except CryptoBrokerError:
        health = Health.UNKNOWN
    if health is not Health.SERVING:
        raise HTTPException(503, "the broker does not serve")
    return "ok"


@app.post("/hash")
async def hash_body(request: Request) -> dict[str, str]:
    """Hashes the body by the profile."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, "the body has more than 1 MiB")
    try:
        result = await request.app.state.client.hash_data(bytes(body))
    except CryptoBrokerError as error:
        logging.getLogger("uvicorn.error").warning("%s", error)
        raise HTTPException(502, "the broker has not hashed the body") from error
    return {"algorithm": result.algorithm, "digest": result.hex}
