/** What a gateway has encoded. */
export class Counters {
  /** Number of batches of frames with rows. */
  batches = 0
  bytes = 0

  encoded(bytes: number): void {
    this.batches += 1
    this.bytes += bytes
  }
}
