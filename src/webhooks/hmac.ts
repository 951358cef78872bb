/**
 * The cryptography of signatures. The package import `#hmac` selects an implementation: `node-hmac.ts` is synchronous, and
 * `web-hmac.ts` needs only WebCrypto. On Node, WebCrypto takes about twice as long.
 */
export interface Hmac {
  /** HMAC-SHA-256 of the prefix followed by the body, in Base64. Text is encoded as UTF-8. */
  sign(secret: string | Uint8Array, prefix: string, body: string | Uint8Array): string | Promise<string>
  /** Whether two texts are equal, in constant time. */
  equal(expected: string, claimed: string): boolean | Promise<boolean>
}
