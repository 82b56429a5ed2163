// SPDX-License-Identifier: Apache-2.0

/**
 * Source is data of any size: a Readable of Node.js, a ReadableStream of the web, or any other
 * iterable of bytes.
 */
export type Source = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Chunks reads a source in chunks of one size. Only the last chunk may be shorter. */
export class Chunks {
  readonly #parts: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  readonly size: number;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: Source, size: number) {
    this.#parts =
      Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    this.size = size;
  }

  /** next returns the next chunk, which is empty after the end. It throws what the source throws. */
  async next(): Promise<Uint8Array> {
    const chunk = new Uint8Array(this.size);
    let filled = 0;
    while (filled < chunk.length) {
      if (this.#rest.length === 0) {
        const part = await this.#parts.next();
        if (part.done === true) {
          break;
        }
        if (!(part.value instanceof Uint8Array)) {
          throw new TypeError(`found a part of type ${typeof part.value}, expected a Uint8Array`);
        }
        this.#rest = part.value;
        continue;
      }
      const taken = this.#rest.subarray(0, chunk.length - filled);
      chunk.set(taken, filled);
      filled += taken.length;
      this.#rest = this.#rest.subarray(taken.length);
    }
    return chunk.subarray(0, filled);
  }

  /** close tells the source that no more chunks are read. */
  async close(): Promise<void> {
    await this.#parts.return?.();
  }
}
