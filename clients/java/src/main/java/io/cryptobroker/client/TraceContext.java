// SPDX-License-Identifier: Apache-2.0

package io.cryptobroker.client;

/**
 * The trace that a call belongs to (W3C Trace Context). A field may be empty.
 *
 * @param traceId 32 hexadecimal digits, as in the header traceparent
 * @param spanId 16 hexadecimal digits, as in the header traceparent
 * @param traceFlags 2 hexadecimal digits, as in the header traceparent
 * @param traceState the value of the header tracestate
 * @param correlationId an id that the caller chooses, at most 128 characters of printable ASCII.
 *     Audit records have it.
 */
public record TraceContext(
    String traceId, String spanId, String traceFlags, String traceState, String correlationId) {

  /**
   * Makes a trace context without trace state and correlation id.
   *
   * @param traceId 32 hexadecimal digits
   * @param spanId 16 hexadecimal digits
   * @param traceFlags 2 hexadecimal digits
   */
  public TraceContext(String traceId, String spanId, String traceFlags) {
    this(traceId, spanId, traceFlags, "", "");
  }
}
