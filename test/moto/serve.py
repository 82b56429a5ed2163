# SPDX-License-Identifier: Apache-2.0
"""Serves moto on a free port and prints the port, once it listens."""

import base64
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP, PSS
from werkzeug.serving import make_server

from moto.kms import utils
from moto.kms.exceptions import InvalidCiphertextException
from moto.kms.responses import KmsResponse
from moto.server import create_backend_app


# moto takes a digest (MessageType DIGEST) for a message and hashes it. The broker sends digests only. The salt of
# PSS is as long as the digest in AWS KMS, and as long as possible in moto.
def sign_rsa(self, digest, algorithm):
    padding, hash_algorithm = self._RSAPrivateKey__padding_and_hash_algorithm(algorithm)
    if isinstance(padding, PSS):
        padding = PSS(mgf=MGF1(hash_algorithm), salt_length=PSS.DIGEST_LENGTH)
    return self.private_key.sign(digest, padding, Prehashed(hash_algorithm))


def sign_ecdsa(self, digest, algorithm):
    utils.validate_signing_algorithm(algorithm, self.valid_signing_algorithms)
    hash_algorithm = self._ECDSAPrivateKey__hash_algorithm(algorithm)
    return self.private_key.sign(digest, ec.ECDSA(Prehashed(hash_algorithm)))


# moto decrypts with symmetric keys only, and does not agree on secrets.
OAEP_HASHES = {"RSAES_OAEP_SHA_1": hashes.SHA1, "RSAES_OAEP_SHA_256": hashes.SHA256}
decrypt_symmetric = KmsResponse.decrypt


def named_key(response):
    name = response._get_param("KeyId")
    response._validate_key_id(name)
    return response.kms_backend.keys[response.kms_backend.any_id_to_key_id(name)]


def decrypt(self):
    algorithm = OAEP_HASHES.get(self._get_param("EncryptionAlgorithm"))
    if algorithm is None:
        return decrypt_symmetric(self)
    key = named_key(self)
    try:
        plaintext = key.private_key.private_key.decrypt(
            self._get_param("CiphertextBlob"), OAEP(mgf=MGF1(algorithm()), algorithm=algorithm(), label=None))
    except ValueError:
        raise InvalidCiphertextException()
    return json.dumps({"Plaintext": base64.b64encode(plaintext).decode(), "KeyId": key.arn})


def derive_shared_secret(self):
    key = named_key(self)
    other = serialization.load_der_public_key(base64.b64decode(self._get_param("PublicKey")))
    secret = key.private_key.private_key.exchange(ec.ECDH(), other)
    return json.dumps({"SharedSecret": base64.b64encode(secret).decode(), "KeyId": key.arn})


utils.RSAPrivateKey.sign = sign_rsa
utils.ECDSAPrivateKey.sign = sign_ecdsa
KmsResponse.decrypt = decrypt
KmsResponse.derive_shared_secret = derive_shared_secret

# Only KMS: finding the service of each request takes as long as the rest of it.
app = create_backend_app("kms")
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
