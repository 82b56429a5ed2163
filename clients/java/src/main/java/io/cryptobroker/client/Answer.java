// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.WireFormat;
import io.cryptobroker.client.internal.stream.v1.Reply;
import io.cryptobroker.client.internal.stream.v1.Status;
import java.io.IOException;

/**
 * The reply to one call of the stream of many calls.
 *
 * @param id the id of the call
 * @param number the number of the operation
 * @param body the encoded reply of the operation
 * @param refusal why the call failed, or null if it did not
 */
record Answer(long id, int number, byte[] body, Status refusal) {
  static Answer read(CodedInputStream input) throws IOException {
    long id = 0;
    int number = 0;
    byte[] body = null;
    for (int tag = input.readTag(); tag != 0; tag = input.readTag()) {
      if (WireFormat.getTagFieldNumber(tag) == Reply.ID_FIELD_NUMBER) {
        id = input.readUInt64();
      } else if (WireFormat.getTagWireType(tag) == WireFormat.WIRETYPE_LENGTH_DELIMITED) {
        number = WireFormat.getTagFieldNumber(tag);
        body = input.readByteArray();
      } else {
        input.skipField(tag);
      }
    }
    return number == Reply.STATUS_FIELD_NUMBER
        ? new Answer(id, number, null, Status.parseFrom(body))
        : new Answer(id, number, body, null);
  }
}
