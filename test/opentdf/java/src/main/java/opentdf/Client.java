// SPDX-License-Identifier: Apache-2.0

package opentdf;

import io.opentdf.platform.sdk.Config;
import io.opentdf.platform.sdk.SDKBuilder;
import io.opentdf.platform.sdk.TDF;
import java.io.ByteArrayOutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/** Encrypts and decrypts files with OpenTDF's Java SDK: Client encrypt|decrypt URL FROM TO. */
public final class Client {
    private Client() {}

    public static void main(String[] arguments) throws Exception {
        String verb = arguments[0];
        String url = arguments[1];
        Path from = Path.of(arguments[2]);
        var builder = SDKBuilder.newBuilder().platformEndpoint(url.replaceFirst("^https?://", ""));
        builder.clientSecret("reader", "secret").useInsecurePlaintextConnection(true);
        var result = new ByteArrayOutputStream();
        try (var sdk = builder.build()) {
            var services = sdk.getServices();
            if (verb.equals("encrypt")) {
                var service = new Config.KASInfo();
                service.URL = url;
                service.Default = true;
                var config = Config.newTDFConfig(Config.withKasInformation(service), Config.withAutoconfigure(false));
                new TDF().createTDF(Files.newInputStream(from), result, config, services.kas(), services.attributes());
            } else {
                try (var file = FileChannel.open(from)) {
                    new TDF().loadTDF(file, services.kas()).readPayload(result);
                }
            }
        }
        Files.write(Path.of(arguments[3]), result.toByteArray());
    }
}
