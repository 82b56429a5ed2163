// SPDX-License-Identifier: Apache-2.0

package example;

import io.cryptobroker.client.Client;
import io.cryptobroker.client.CryptoBrokerException;
import io.cryptobroker.client.HashDataRequest;
import io.cryptobroker.client.Health;
import java.io.IOException;
import java.io.InputStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@RestController
class HashController {
  /** What hashData takes, in bytes. */
  private static final int MAX_BODY = 1 << 20;

  private static final Logger log = LoggerFactory.getLogger(HashController.class);

  private final Client client;

  HashController(Client client) {
    this.client = client;
  }

  record Hashed(String algorithm, String digest) {}

  @GetMapping("/healthz")
  String healthz() {
    return "ok\n";
  }

  @GetMapping("/readyz")
  String readyz() {
    if (client.health() != Health.SERVING) {
      throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE);
    }
    return "ok\n";
  }

  @PostMapping("/hash")
  Hashed hash(InputStream body) throws IOException {
    byte[] input = body.readNBytes(MAX_BODY + 1);
    if (input.length > MAX_BODY) {
      throw new ResponseStatusException(HttpStatus.PAYLOAD_TOO_LARGE);
    }
    var result = client.hashData(new HashDataRequest(input));
    return new Hashed(result.algorithm(), result.hex());
  }

  @ExceptionHandler
  @ResponseStatus(HttpStatus.BAD_GATEWAY)
  String refused(CryptoBrokerException error) {
    log.error(error.getMessage());
    return "the broker has not answered as expected\n";
  }
}
