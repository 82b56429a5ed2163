# SPDX-License-Identifier: Apache-2.0
"""Serves moto on a free port and prints the port, once it listens."""

from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from werkzeug.serving import make_server

from moto.kms import utils
from moto.server import DomainDispatcherApplication, create_backend_app


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


utils.RSAPrivateKey.sign = sign_rsa
utils.ECDSAPrivateKey.sign = sign_ecdsa

app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
