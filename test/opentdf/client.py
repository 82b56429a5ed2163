# SPDX-License-Identifier: Apache-2.0
#
# Encrypts and decrypts files with otdf-python: client.py encrypt|decrypt PLATFORM FROM TO
import sys
from pathlib import Path

from otdf_python.sdk_builder import SDKBuilder
from otdf_python.tdf import TDFReaderConfig

verb, platform, source, target = sys.argv[1:]
builder = SDKBuilder.new_builder().set_platform_endpoint(platform)
sdk = builder.client_secret("reader", "secret").use_insecure_plaintext_connection(True).build()
with sdk:
    if verb == "encrypt":
        config = sdk.new_tdf_config(use_plaintext=True)
        _, _, out = sdk.create_tdf(Path(source).read_bytes(), config)
        Path(target).write_bytes(out.getvalue())
    else:
        Path(target).write_bytes(sdk.load_tdf(Path(source).read_bytes(), TDFReaderConfig()).payload)
