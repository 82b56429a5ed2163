# SPDX-License-Identifier: Apache-2.0
"""Errors have a class, a code, an operation, a profile and a reason."""

from __future__ import annotations

import copy
import pickle

import pytest
from conftest import Either, MakeClient

import cryptobroker
from cryptobroker import Code, KeyId, RawKey


@pytest.mark.parametrize(
    ("method", "arguments", "kind", "code", "reason"),
    [
        pytest.param(
            "hash_data",
            {"input": b"", "profile": "Nobody"},
            cryptobroker.InvalidArgumentError,
            Code.INVALID_ARGUMENT,
            'HashData with profile "Nobody": no profile of this name is served',
            id="an unknown profile",
        ),
        pytest.param(
            "encrypt_data",
            {"plaintext": b"", "key": RawKey(b"k" * 32), "profile": "Default"},
            cryptobroker.NotServedError,
            Code.FAILED_PRECONDITION,
            'EncryptData with profile "Default": the profile does not offer this operation',
            id="an operation that the profile does not offer",
        ),
        pytest.param(
            "encrypt_data",
            {"plaintext": b"", "key": KeyId("nobody"), "profile": "Orders"},
            cryptobroker.NotFoundError,
            Code.NOT_FOUND,
            'EncryptData with profile "Orders": there is no key "nobody"',
            id="a key that the broker does not have",
        ),
        pytest.param(
            "get_public_key",
            {"key_id": "orders", "profile": "Keys"},
            cryptobroker.PermissionDeniedError,
            Code.PERMISSION_DENIED,
            'GetPublicKey with profile "Keys": ',
            id="a key that the profile does not list",
        ),
    ],
)
async def test_a_refusal_has_the_code_the_profile_and_the_reason_of_the_broker(
    client: Either,
    method: str,
    arguments: dict[str, object],
    kind: type[cryptobroker.CryptoBrokerError],
    code: Code,
    reason: str,
) -> None:
    with pytest.raises(kind) as raised:
        await getattr(client, method)(**arguments)
    error = raised.value
    assert (error.code, error.profile, error.retry_budget_spent) == (code, arguments["profile"], False)
    assert error.reason.startswith(reason)
    assert error.reason.startswith(error.operation)
    assert str(error) == f"crypto broker: {code.name}: {error.reason}"
    assert error.__cause__ is None


def test_an_error_can_be_copied_and_sent_to_other_processes() -> None:
    error = cryptobroker.DeadlineExceededError(Code.DEADLINE_EXCEEDED, "HashData", "P", "too late")
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert (other.code, other.operation, other.profile, other.reason) == (error.code, "HashData", "P", "too late")
        assert str(other) == "crypto broker: DEADLINE_EXCEEDED: too late"


async def test_a_request_that_no_broker_reads_is_refused_at_once(make_client: MakeClient) -> None:
    client = make_client("/nowhere")
    with pytest.raises(cryptobroker.InvalidArgumentError, match="expected at most 4194304"):
        await client.hash_data(bytes(4 << 20), profile="P")


def test_what_is_printed_of_results_has_no_secret() -> None:
    for value in (
        RawKey(b"secret"),
        cryptobroker.DecryptDataResult(b"secret"),
        cryptobroker.GenerateDataKeyResult(b"secret", b"w", "a"),
        cryptobroker.UnwrapKeyResult(b"secret", "a"),
        cryptobroker.UnwrappedKey(b"secret"),
    ):
        assert "secret" not in repr(value)
