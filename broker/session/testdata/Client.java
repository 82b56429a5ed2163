// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** A client of the protocol of encrypted sessions, from fixed inputs: a flat JSON of texts in, and one out. */
public class Client {
    static final Map<String, String> given = new HashMap<>();

    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }

    static byte[] unb64(String text) { return Base64.getDecoder().decode(text); }

    static String b64(byte[] data) { return Base64.getEncoder().encodeToString(data); }

    static byte[] join(Object... parts) {
        var all = new ByteArrayOutputStream();
        for (Object part : parts) {
            all.writeBytes(part instanceof String text ? bytes(text) : (byte[]) part);
        }
        return all.toByteArray();
    }

    static byte[] mac(byte[] key, byte[] data) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key.length > 0 ? key : new byte[32], "HmacSHA256"));
        return mac.doFinal(data);
    }

    /** HKDF-Expand for 32 bytes. */
    static byte[] expand(byte[] secret, Object... info) throws GeneralSecurityException {
        return mac(secret, join(join(info), new byte[] {1}));
    }

    static byte[] labeledExtract(byte[] id, byte[] salt, String label, byte[] ikm) throws GeneralSecurityException {
        return mac(salt, join("HPKE-v1", id, label, ikm));
    }

    static byte[] labeledExpand(byte[] id, byte[] prk, String label, byte[] info) throws GeneralSecurityException {
        return expand(prk, new byte[] {0, 32}, "HPKE-v1", id, label, info);
    }

    /** The secret of HPKE (RFC 9180) in base mode, with DHKEM(P-256, HKDF-SHA256) and export-only. */
    static byte[] hpke(byte[] shared, byte[] share, byte[] own, byte[] info) throws GeneralSecurityException {
        byte[] none = {};
        byte[] kem = join("KEM", new byte[] {0, 0x10});
        byte[] suite = join("HPKE", new byte[] {0, 0x10, 0, 1, (byte) 0xff, (byte) 0xff});
        byte[] prk = labeledExtract(kem, none, "eae_prk", shared);
        byte[] secret = labeledExpand(kem, prk, "shared_secret", join(share, own));
        byte[] context = join(new byte[] {0}, labeledExtract(suite, none, "psk_id_hash", none), labeledExtract(suite, none, "info_hash", info));
        byte[] exporter = labeledExpand(suite, labeledExtract(suite, secret, "secret", none), "exp", context);
        return labeledExpand(suite, exporter, "sec", bytes("secret"));
    }

    static byte[] agree(byte[] share) throws GeneralSecurityException {
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        ECParameterSpec curve = parameters.getParameterSpec(ECParameterSpec.class);
        ECPoint point = new ECPoint(new BigInteger(1, Arrays.copyOfRange(share, 1, 33)), new BigInteger(1, Arrays.copyOfRange(share, 33, 65)));
        KeyFactory keys = KeyFactory.getInstance("EC");
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(keys.generatePrivate(new ECPrivateKeySpec(new BigInteger(given.get("scalar"), 16), curve)));
        agreement.doPhase(keys.generatePublic(new ECPublicKeySpec(point, curve)), true);
        return agreement.generateSecret();
    }

    static byte[] gcm(int mode, byte[] key, byte[] iv, String aad, byte[] data) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(mode, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, iv));
        cipher.updateAAD(bytes(aad));
        return cipher.doFinal(data);
    }

    public static void main(String[] arguments) throws Exception {
        var field = Pattern.compile("\"(\\w+)\":\"([^\"\\\\]*)\"").matcher(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
        while (field.find()) {
            given.put(field.group(1), field.group(2));
        }
        String version = given.get("version"), path = given.get("path"), time = given.get("timestamp"), nonce = given.get("nonce");
        String clientId = given.get("clientId"), sequence = given.get("sequence"), kid = "session:" + given.get("id");
        byte[] share = unb64(given.get("serverPublicKey")), own = unb64(given.get("clientPublicKey")), iv = unb64(given.get("iv"));
        byte[] shared = agree(share), key, replyKey, following = {};
        String aad;
        if (version.equals("native")) {
            String info = String.join("\n", "session-hpke-p256", given.get("profile"), "A256GCM", given.get("id"), given.get("lifetime"), given.get("clientPublicKey"));
            byte[] secret = hpke(shared, share, own, bytes(info));
            key = expand(secret, "request");
            replyKey = expand(secret, "reply");
            following = expand(secret, "rekey");
            aad = String.join("|", "POST", path, time, sequence, kid);
        } else {
            key = replyKey = expand(mac(bytes(given.get("id")), shared), "SESSION|A256GCM|" + (clientId.isEmpty() ? "AUTH" : clientId));
            aad = version.equals("2") ? String.join("|", time, nonce, kid, clientId) : String.join("|", "POST", path, time, nonce, kid);
        }
        byte[] sealed = gcm(Cipher.ENCRYPT_MODE, key, iv, aad, bytes(given.get("plaintext")));
        Map<String, String> made = new LinkedHashMap<>(Map.of("method", "POST", "path", path, "kid", kid, "encAlg", "A256GCM"));
        byte[] whole = unb64(given.get("replyBody"));
        String replyAAD = String.join("|", "REPLY", path, sequence, kid);
        switch (version) {
            case "1" -> {
                int end = sealed.length - 16;
                made.put("iv", b64(iv));
                made.put("tag", b64(Arrays.copyOfRange(sealed, end, sealed.length)));
                made.put("aad", b64(bytes(aad)));
                made.put("nonce", nonce);
                made.put("timestamp", time);
                made.put("body", b64(bytes(b64(Arrays.copyOf(sealed, end)))));
                whole = join(unb64(given.get("replyIV")), unb64(new String(whole, StandardCharsets.UTF_8)), unb64(given.get("replyTag")));
                replyAAD = String.join("|", "200", path, given.get("replyTimestamp"), given.get("replyNonce"), kid);
                if (!Arrays.equals(unb64(given.get("replyAAD")), bytes(replyAAD))) {
                    throw new IllegalStateException("another X-AAD");
                }
            }
            case "2" -> {
                made.put("idempotencyKey", time + "." + nonce);
                made.put("clientId", clientId);
                made.put("body", b64(join(iv, sealed)));
                replyAAD = given.get("replyIdempotencyKey").replace('.', '|') + "|" + kid + "|" + clientId;
            }
            default -> {
                made.put("timestamp", time);
                made.put("sequence", sequence);
                made.put("body", b64(join(iv, sealed)));
            }
        }
        byte[] opened = gcm(Cipher.DECRYPT_MODE, replyKey, Arrays.copyOf(whole, 12), replyAAD, Arrays.copyOfRange(whole, 12, whole.length));
        made.put("key", b64(key));
        made.put("replyKey", b64(replyKey));
        made.put("nextSecret", b64(following));
        made.put("opened", new String(opened, StandardCharsets.UTF_8));
        System.out.println(made.entrySet().stream().map(e -> '"' + e.getKey() + "\":\"" + e.getValue() + '"').collect(Collectors.joining(",", "{", "}")));
    }
}
