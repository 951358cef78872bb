import { createHmac } from 'node:crypto'

/** The signed content (§6.1). */
export interface Signed {
  /** The `webhook-id` header. */
  readonly id: string
  /** The `webhook-timestamp` header, Unix seconds. */
  readonly timestamp: number
  /** The exact request body. */
  readonly body: string
}

/**
 * The `webhook-signature` header (§6.1): an entry `v1,<base64>` for each secret, separated by spaces, so that receivers can
 * verify either one during a rotation. A secret of the form of Standard Webhooks, `whsec_` and Base64, signs twice: as text, as the
 * interface has it, and with the bytes that libraries of that standard read from it.
 */
export function signatures(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const content = `${id}.${timestamp}.${body}`
  return secrets
    .flatMap((secret) => keysOf(secret))
    .map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`)
    .join(' ')
}

function keysOf(secret: string): readonly (string | Buffer)[] {
  const encoded = /^whsec_((?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(secret)?.[1]
  return encoded === undefined ? [secret] : [secret, Buffer.from(encoded, 'base64')]
}
