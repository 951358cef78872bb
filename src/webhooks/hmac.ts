/**
 * The cryptography of signatures. There are two of it, and the package import `#hmac` picks one: `node-hmac.ts` answers at
 * once, and `web-hmac.ts` runs wherever WebCrypto is. On Node a verification by WebCrypto takes about twice as long.
 */
export interface Hmac {
  /** HMAC-SHA-256 of a text and the bytes or text that follow it, in Base64. Secret and texts stand for their UTF-8 bytes. */
  sign(secret: string, prefix: string, body: string | Uint8Array): string | Promise<string>
  /** Whether two texts are the same. The time that it takes does not tell where they differ. */
  equal(expected: string, claimed: string): boolean | Promise<boolean>
}
