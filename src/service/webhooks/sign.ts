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
 * verify either one during a rotation.
 */
export function signatures(secrets: readonly string[], { id, timestamp, body }: Signed): string {
  const content = `${id}.${timestamp}.${body}`
  return secrets
    .map((secret) => `v1,${createHmac('sha256', secret).update(content).digest('base64')}`)
    .join(' ')
}
