# SPDX-License-Identifier: Apache-2.0
"""Serves KMIP with PyKMIP, and prints the port once connections are accepted.

The arguments are: IP address, port (0 for a free one), folder with server.crt, server.key and ca.crt,
which also gets the log, and the path of the database. Servers with the same database serve
the same keys.
"""

import sys

from kmip.services.server import KmipServer

host, port, folder, database = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
server = KmipServer(
    hostname=host,
    port=5696,
    certificate_path=folder + "/server.crt",
    key_path=folder + "/server.key",
    ca_path=folder + "/ca.crt",
    auth_suite="TLS1.2",
    config_path=None,
    log_path=folder + "/server.log",
    policy_path=folder,
    enable_tls_client_auth=True,
    logging_level="WARNING",
    database_path=database,
)
server.config.settings["port"] = port  # the constructor takes no 0
server.start()
print(server._socket.getsockname()[1], flush=True)
server.serve()
