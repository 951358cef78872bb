import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Hmac } from './hmac.ts'

/** {@link Hmac} by `node:crypto`. */
export const hmac: Hmac = {
  sign: (secret, prefix, body) => createHmac('sha256', secret).update(prefix).update(body).digest('base64'),

  equal(expected, claimed) {
    const bytes = Buffer.from(expected)
    const others = Buffer.from(claimed)
    return bytes.length === others.length && timingSafeEqual(bytes, others)
  },
}
