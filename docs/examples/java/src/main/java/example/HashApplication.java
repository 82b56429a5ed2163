// SPDX-License-Identifier: Apache-2.0

package example;

import io.cryptobroker.client.Client;
import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A service that answers POST /hash with the digest of the body. */
@SpringBootApplication
public class HashApplication {
  public static void main(String[] args) {
    SpringApplication.run(HashApplication.class, args);
  }

  /** The client of all requests. Spring closes it after the web server has ended its requests. */
  @Bean
  Client client() {
    return Client.builder().profile("Default").timeout(Duration.ofSeconds(10)).build();
  }
}
